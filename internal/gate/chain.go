package gate

import (
	"cmp"
	"slices"
	"strings"

	"github.com/quotasvc/quotasvc/internal/kit/cowmap"
)

// link is the position of a rule in its chain. A link does not change. As long as the rule replaces the same rule,
// later snapshots keep its link. They also keep the links of the rules that replace this rule.
type link struct {
	id, replaces string
	own          bool  // the link belongs to a plan's own rule
	up           *link // link of the replaced rule; a general rule links only to general rules; nil: none
	root         *link // the link of the last rule of the chain, which replaces no rule; may be this link
}

// resolveReplaces sets the links of general rules. If a rule replaces a rule that does not exist, its chain ends at
// this rule. If rules replace each other in a circle, resolveReplaces cuts the circle at the rule with the greatest
// id. The catalogue's API refuses such rules, but a person can write them into the table. Each rule is visited only a
// few times, even in a long chain.
func (x *ruleIndex) resolveReplaces(all []*planRule) {
	for _, p := range all {
		if target := x.byID.Get(p.replaces); target != nil {
			p.link.up = target.link
		}
	}
	var walk []*link // the links from a rule to the first link whose root is known
	for i, p := range all {
		cowmap.Yield(i)
		walk = walk[:0]
		at := p.link
		for at.root == nil && at.up != nil {
			at.root = p.link // marks this walk until the root is known
			walk = append(walk, at)
			at = at.up
		}
		if begin := slices.Index(walk, at); begin >= 0 && at.root == p.link { // the links form a circle
			last := slices.MaxFunc(walk[begin:], func(a, b *link) int { return strings.Compare(a.id, b.id) })
			last.up = nil
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

// resolveOwn sets the links of the plan's own rules.
func (s *ruleSet) resolveOwn() {
	for _, p := range s.own.own {
		var target *link
		if r := s.rule(p.replaces); r != nil {
			target = r.link
		}
		for at := target; at != nil; at = s.up(at) {
			if at == p.link {
				target = nil
				break
			}
		}
		p.link.up = target
	}
	for _, p := range s.own.own {
		p.link.root = s.walk(p.link)
	}
}

// up returns the next link of the chain for the plan's tenants: the link of the rule that is replaced. It returns nil
// at the end of the chain.
func (s *ruleSet) up(at *link) *link {
	if s.rerooted && !at.own {
		if own := s.own.byID.Get(at.replaces); own != nil {
			return own.link
		}
	}
	return at.up
}

// rootOf returns the last link of the chain to which p belongs, for the plan's tenants.
func (s *ruleSet) rootOf(p *planRule) *link {
	if !s.rerooted || p.own {
		return p.link.root
	}
	return s.walk(p.link)
}

func (s *ruleSet) walk(at *link) *link {
	for next := s.up(at); next != nil; next = s.up(at) {
		at = next
	}
	return at
}

// dropReplaced leaves one rule of each chain in list. First it drops the rules that another rule in list replaces,
// directly or through other rules. Of the remaining rules of a chain it keeps the most specific rule. If a replaces
// b, and b replaces c, then a replaces c; the same is true of "more specific". So it does not matter which rules were
// dropped first.
func (s *ruleSet) dropReplaced(list []*planRule) []*planRule {
	list = slices.DeleteFunc(list, func(p *planRule) bool {
		return slices.ContainsFunc(list, func(o *planRule) bool { return o != p && s.rootOf(o) == s.rootOf(p) && s.supersedes(o.link, p.link) })
	})
	return slices.DeleteFunc(list, func(p *planRule) bool {
		return slices.ContainsFunc(list, func(o *planRule) bool {
			return o != p && s.rootOf(o) == s.rootOf(p) && compareSpecificity(o, p) < 0
		})
	})
}

// supersedes reports whether the rule of the first link replaces the rule of the second link, directly or through
// other rules.
func (s *ruleSet) supersedes(at, other *link) bool {
	for at = s.up(at); at != nil; at = s.up(at) {
		if at == other {
			return true
		}
	}
	return false
}

// compareSpecificity orders the rules of a chain, the most specific first. The order is: rules of a tenant, rules of
// a plan, the precedence of route patterns, rules of a method, rules of a meter. Rules that are equal in all of these
// are in the order of their ids.
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
