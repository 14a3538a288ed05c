package gate

import (
	"cmp"
	"slices"
)

// resolveReplaces sets replaced and root of general rules. It ignores the name of a rule that does not exist, and cuts a circle at its last
// rule. The catalogue's API refuses both; someone may have written them into the table by hand. Each rule is visited a few times, however
// long the chains are.
func (x *ruleIndex) resolveReplaces() {
	if len(x.replacing) == 0 {
		for _, p := range x.all {
			p.root = p
		}
		return
	}
	for _, p := range x.all {
		p.replaced = x.byID[p.replaces]
	}
	var walk []*planRule // from a rule to the first one whose root is known
	for i, p := range x.all {
		yield(i)
		walk = walk[:0]
		at := p
		for at.root == nil && at.replaced != nil {
			at.root = p // on this walk, for now
			walk = append(walk, at)
			at = at.replaced
		}
		if begin := slices.Index(walk, at); begin >= 0 && at.root == p { // the walk has come back to at
			last := slices.MaxFunc(walk[begin:], func(a, b *planRule) int { return cmp.Compare(a.order, b.order) })
			last.replaced = nil
			at = last
			at.root = nil
		}
		if at.root == nil {
			at.root = at
		}
		for _, on := range walk {
			on.root = at.root
		}
	}
}

// resolveOwn sets replaced and root of the plan's own rules.
func (s *ruleSet) resolveOwn() {
	for _, p := range s.own.all {
		target := s.rule(p.replaces)
		for at := target; at != nil; at = s.up(at) {
			if at == p {
				target = nil
				break
			}
		}
		p.replaced = target
	}
	for _, p := range s.own.all {
		p.root = s.walk(p)
	}
}

// up returns the rule that p replaces for the plan's tenants; nil: none.
func (s *ruleSet) up(p *planRule) *planRule {
	if s.rerooted && !p.own {
		if own := s.own.byID[p.replaces]; own != nil {
			return own
		}
	}
	return p.replaced
}

// rootOf returns the last rule of p's chain for the plan's tenants.
func (s *ruleSet) rootOf(p *planRule) *planRule {
	if !s.rerooted || p.own {
		return p.root
	}
	return s.walk(p)
}

func (s *ruleSet) walk(p *planRule) *planRule {
	for next := s.up(p); next != nil; next = s.up(p) {
		p = next
	}
	return p
}

// dropReplaced leaves one rule of each chain in list. It drops the rules that another one in list replaces, directly or
// through others, and keeps the most specific of the rest. Both relations are transitive, so comparing with a rule that is
// already dropped does no harm.
func (s *ruleSet) dropReplaced(list []*planRule) []*planRule {
	list = slices.DeleteFunc(list, func(p *planRule) bool {
		return slices.ContainsFunc(list, func(o *planRule) bool { return o != p && s.rootOf(o) == s.rootOf(p) && s.supersedes(o, p) })
	})
	return slices.DeleteFunc(list, func(p *planRule) bool {
		return slices.ContainsFunc(list, func(o *planRule) bool {
			return o != p && s.rootOf(o) == s.rootOf(p) && compareSpecificity(o, p) < 0
		})
	})
}

// supersedes reports whether p replaces other, directly or through other rules.
func (s *ruleSet) supersedes(p, other *planRule) bool {
	for at := s.up(p); at != nil; at = s.up(at) {
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
