package gate

import (
	"maps"
	"slices"

	"github.com/quotasvc/quotasvc/internal/catalog"
	"github.com/quotasvc/quotasvc/internal/ratelimit/rule"
)

// changesMax is the largest number of changed limits for which compiled rules are updated. If more limits were
// changed, all rules are compiled again.
const changesMax = 500

// ruleChange is the difference between two indexes of general rules.
type ruleChange struct {
	// left are rules of the old index, and came are rules of the new index. The other index does not have these
	// rules, or has them for other requests or in other chains.
	left, came []*planRule

	relinked []string // ids of the rules in left and came, and of the rules that they replace
}

// with returns a copy of x without the removed rules and with the rules in put. The copy shares unchanged parts with
// x. It returns nil if it would have to examine the rules that replace a removed or changed rule. Then a new index
// must be made.
func (x *ruleIndex) with(removed []string, put []*limitRule) (*ruleIndex, *ruleChange) {
	next := &ruleIndex{
		byID: x.byID.Fork(), replacing: x.replacing.Fork(), rates: x.rates.fork(), leases: x.leases.fork(),
	}
	change := &ruleChange{}
	for _, id := range removed {
		old := next.byID.Get(id)
		switch {
		case old == nil:
			continue
		case next.replacing.Get(id) > 0:
			return nil, nil
		}
		next.remove(old)
		change.left = append(change.left, old)
		change.relinked = append(change.relinked, id, old.replaces)
	}
	for _, r := range put {
		if !next.put(r, change) {
			return nil, nil
		}
	}
	return next, change
}

// put adds a rule to an index that is being made, and adds the difference to change. It returns false if the rules
// that replace r must be examined again.
func (x *ruleIndex) put(r *limitRule, change *ruleChange) bool {
	id := r.compiled.ID
	old := x.byID.Get(id)
	p := &planRule{limitRule: r}
	sameReach := old != nil && old.reachesAs(r)
	switch {
	case !sameReach && x.replacing.Get(id) > 0 || r.replaces == id:
		return false
	case old != nil && old.replaces == r.replaces:
		p.link = old.link
	default:
		p.link = x.linkFor(r)
		change.relinked = append(change.relinked, id, r.replaces)
	}
	p.label()
	if !sameReach {
		change.came = append(change.came, p)
	}
	if old != nil {
		if !sameReach {
			change.left = append(change.left, old)
			change.relinked = append(change.relinked, old.replaces)
		}
		x.remove(old)
	}
	x.add(p)
	return true
}

// linkFor returns a new link for a rule that no rule replaces.
func (x *ruleIndex) linkFor(r *limitRule) *link {
	l := &link{id: r.compiled.ID, replaces: r.replaces}
	l.root = l
	if target := x.byID.Get(r.replaces); target != nil {
		l.up, l.root = target.link, target.link.root
	}
	return l
}

// reachesAs reports whether two versions of a rule apply to the same requests and belong to the same chain.
func (r *limitRule) reachesAs(o *limitRule) bool {
	return r.tenant == o.tenant && r.plan == o.plan && r.meter == o.meter && r.method == o.method && r.replaces == o.replaces &&
		r.route.Pattern == o.route.Pattern && r.forms == o.forms &&
		(r.compiled.Kind == rule.KindConcurrency) == (o.compiled.Kind == rule.KindConcurrency)
}

// over returns the rule set of the same plan with the rules in general. again is true if the whole set was made anew,
// because the plan's own rules may now belong to other chains.
func (s *ruleSet) over(general *ruleIndex, change *ruleChange) (set *ruleSet, again bool) {
	for _, id := range change.relinked {
		if s.own.replacing.Get(id) > 0 || s.own.byID.Get(id) != nil {
			own := make([]*limitRule, len(s.own.own))
			for i, p := range s.own.own {
				own[i] = p.limitRule
			}
			return newRuleSet(own, general), true
		}
	}
	return &ruleSet{own: s.own, general: general, rerooted: s.rerooted}, false
}

// next returns the rules of snapshot. The argument `before` is the previous snapshot, from which c was compiled. next
// compiles only the changed limits, and shares the other rules with c. It returns nil if all rules must be compiled
// again.
func (c *compiledRules) next(snapshot, before *catalog.Snapshot) *compiledRules {
	put, plans := snapshot.Changes(before)
	gone, gonePlans := before.Changes(snapshot)
	if len(put)+len(gone) > changesMax {
		return nil
	}
	next := &compiledRules{
		denials: denialsOf(snapshot), plans: make(map[string]*ruleSet, len(c.plans)), labels: c.labels.Fork(),
		skipped: maps.Clone(c.skipped), counts: c.counts.fork(),
	}

	// Compile the limits that are new or changed. If a limit cannot be compiled, remove its rule, as for a deleted
	// limit.
	var rules []*limitRule
	stored := make(map[string]bool, len(put))
	for _, l := range put {
		delete(next.skipped, l.Rule)
		n := len(rules)
		rules = next.compile(rules, l, c.general.general)
		stored[l.Rule] = len(rules) > n
	}
	var removed []string
	for _, l := range slices.Concat(gone, put) {
		if !stored[l.Rule] {
			removed = append(removed, l.Rule)
		}
	}

	// The general rules.
	index, change := c.general.general.with(removed, rules)
	if index == nil {
		return nil
	}
	next.general = newRuleSet(nil, index)
	next.counts.change(c.general.general, index, change)

	// The rules of plans. The set of an unchanged plan gets the changed general rules.
	changed := map[string]bool{}
	for _, p := range slices.Concat(plans, gonePlans) {
		changed[p.ID] = true
		for i := range p.Limits {
			delete(next.skipped, p.Limits[i].Rule)
		}
	}
	for name, set := range c.plans {
		if changed[name] {
			next.dropSet(set)
			continue
		}
		over, again := set.over(index, change)
		if again {
			next.dropSet(set)
		}
		next.plans[name] = over
		if again {
			next.addSet(name, over)
		}
	}

	// The labels in metrics.
	for _, p := range change.left {
		next.unlabel(p)
	}
	for _, p := range change.came {
		next.noteLabel(p)
	}
	for _, plan := range plans {
		next.compilePlan(plan, c)
	}
	for _, set := range c.older {
		for _, p := range set.own.own {
			next.unlabel(p)
		}
	}
	next.compileOlder(snapshot, c)
	return next
}
