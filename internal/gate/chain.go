package gate

import (
	"cmp"
	"slices"
)

// resolveReplaces sets replaced and chain of all rules. It ignores the name of a rule that does not exist, and cuts a circle.
// The catalogue's API refuses both; someone may have written them into the table by hand.
func (s *ruleSet) resolveReplaces(all []*planRule) {
	for _, p := range all {
		target := s.byID[p.replaces]
		for at := target; at != nil; at = at.replaced {
			if at == p {
				target = nil
				break
			}
		}
		p.replaced = target
	}
	for _, p := range all {
		if p.replaced == nil {
			continue
		}
		last := p.replaced
		for last.replaced != nil {
			last = last.replaced
		}
		p.chain, last.chain, s.hasChains = last, last, true
	}
}

// dropReplaced leaves one rule of each chain in list. It drops the rules that another one in list replaces, directly or
// through others, and keeps the most specific of the rest. Both relations are transitive, so comparing with a rule that is
// already dropped does no harm.
func dropReplaced(list []*planRule) []*planRule {
	list = slices.DeleteFunc(list, func(p *planRule) bool {
		return p.chain != nil && slices.ContainsFunc(list, func(o *planRule) bool { return o.chain == p.chain && o.supersedes(p) })
	})
	return slices.DeleteFunc(list, func(p *planRule) bool {
		return p.chain != nil && slices.ContainsFunc(list, func(o *planRule) bool {
			return o.chain == p.chain && compareSpecificity(o, p) < 0
		})
	})
}

// supersedes reports whether p replaces other, directly or through other rules.
func (p *planRule) supersedes(other *planRule) bool {
	for at := p.replaced; at != nil; at = at.replaced {
		if at == other {
			return true
		}
	}
	return false
}

// compareSpecificity orders the rules of a chain, the most specific first: a rule of a tenant, a rule of a plan, the
// precedence of routes, a rule of a method, a rule of a meter, and at last the ids.
func compareSpecificity(a, b *planRule) int {
	first := func(a, b bool) int {
		switch {
		case a == b:
			return 0
		case a:
			return -1
		default:
			return 1
		}
	}
	return cmp.Or(
		first(a.tenant != "", b.tenant != ""),
		first(a.plan != "" || a.own, b.plan != "" || b.own),
		a.route.Compare(b.route.Pattern),
		first(a.method != "", b.method != ""),
		first(a.meter != "", b.meter != ""),
		cmp.Compare(a.compiled.ID, b.compiled.ID),
	)
}
