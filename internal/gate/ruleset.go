package gate

import (
	"cmp"
	"iter"
	"slices"
	"strings"

	"github.com/quotasvc/quotasvc/internal/kit/cowmap"
	"github.com/quotasvc/quotasvc/internal/kit/route"
	"github.com/quotasvc/quotasvc/internal/ratelimit"
	"github.com/quotasvc/quotasvc/internal/ratelimit/rule"
)

// fewRules is the largest number of applicable rules for which the list of a request fits on the stack. It is enough
// for the rules that can be decided, and for some rules that other rules replace.
const fewRules = 2 * ratelimit.MaxCharges

// ruleSet has the rules for the tenants of one plan: the plan's own rules, and the general rules whose ids the plan
// does not use. All sets share the general rules. A ruleSet does not change.
type ruleSet struct {
	own     *ruleIndex // nil: the plan has no own limits
	general *ruleIndex

	// rerooted means that general rules replace a rule of the plan. Then the chains of these general rules differ
	// from their chains without the plan.
	rerooted bool
}

// ruleIndex finds rules by the fields of a request, so the cost does not grow with the number of rules. The index of
// the next snapshot shares unchanged parts with it (see ruleIndex.with).
type ruleIndex struct {
	own  []*planRule // the rules of a plan, in order; nil for general rules
	byID cowmap.Map[*planRule]

	// replacing contains, for the id of a replaced rule, the number of rules that replace it. The replaced rule need
	// not exist.
	replacing cowmap.Map[int]

	rates, leases finder // leases has the rules of kind concurrency, which apply to leases; rates has all other rules
}

// finder contains the rules of an index. Each rule is in the first of these maps for which it has a value: byTenant,
// routes, byMeter, byPlan. A rule without such values is in others.
type finder struct {
	byTenant cowmap.Map[[]*planRule]
	routes   route.Index[*planRule]
	byMeter  cowmap.Map[[]*planRule]
	byPlan   cowmap.Map[[]*planRule]
	others   []*planRule
	forms    []route.Forms // forms in which a route is looked up, in addition to the route as it is
	forked   bool          // an earlier finder shares the lists, so they must be copied before a change
}

// planRule is a rule of a ruleSet. It does not change. The next snapshots have the same planRule until its limit
// changes.
type planRule struct {
	*limitRule

	own   bool  // the rule is the plan's own, not a general rule
	order int   // position of a plan's own rule in answers; general rules follow, in the order of their ids
	link  *link // position of the rule in its chain
}

// compareOrder orders rules as answers list them.
func compareOrder(a, b *planRule) int {
	if a.order != b.order {
		return cmp.Compare(a.order, b.order)
	}
	return strings.Compare(a.compiled.ID, b.compiled.ID)
}

// newGeneralRules returns the index of the general rules.
func newGeneralRules(rules []*limitRule) *ruleIndex {
	x, all := newRuleIndex(rules, false)
	x.resolveReplaces(all)
	return x
}

// newRuleIndex returns an index of rules, and its rules in order.
func newRuleIndex(rules []*limitRule, own bool) (*ruleIndex, []*planRule) {
	x, all := &ruleIndex{}, make([]*planRule, 0, len(rules))
	for i, r := range rules {
		cowmap.Yield(i)
		if x.byID.Get(r.compiled.ID) != nil {
			continue
		}
		p := &planRule{limitRule: r, own: own, link: &link{id: r.compiled.ID, replaces: r.replaces, own: own}}
		if own {
			p.order = i - len(rules)
		}
		all = append(all, p)
		x.add(p)
	}
	if own {
		x.own = all
	}
	return x, all
}

// add adds a rule to an index that is being made.
func (x *ruleIndex) add(p *planRule) {
	x.byID.Set(p.compiled.ID, p)
	if p.replaces != "" {
		x.replacing.Set(p.replaces, x.replacing.Get(p.replaces)+1)
	}
	x.finderOf(p).change(p, true)
}

// remove removes a rule from an index that is being made.
func (x *ruleIndex) remove(p *planRule) {
	x.byID.Delete(p.compiled.ID)
	if n := x.replacing.Get(p.replaces); n > 1 {
		x.replacing.Set(p.replaces, n-1)
	} else {
		x.replacing.Delete(p.replaces)
	}
	x.finderOf(p).change(p, false)
}

// each returns an iterator over all rules, in random order.
func (x *ruleIndex) each() iter.Seq[*planRule] {
	return func(yield func(*planRule) bool) {
		for _, p := range x.byID.All() {
			if !yield(p) {
				return
			}
		}
	}
}

func (x *ruleIndex) finderOf(p *planRule) *finder {
	if p.compiled.Kind == rule.KindConcurrency {
		return &x.leases
	}
	return &x.rates
}

// newRuleSet returns the rule set of a plan. own are the plan's own rules.
func newRuleSet(own []*limitRule, general *ruleIndex) *ruleSet {
	s := &ruleSet{general: general}
	if len(own) == 0 {
		return s
	}
	s.own, _ = newRuleIndex(own, true)
	for _, p := range s.own.own {
		s.rerooted = s.rerooted || general.replacing.Get(p.compiled.ID) > 0
	}
	s.resolveOwn()
	return s
}

// change adds or removes a rule in the field to which the rule belongs.
func (f *finder) change(p *planRule, add bool) {
	switch {
	case p.tenant != "":
		f.changeIn(&f.byTenant, p.tenant, p, add)
	case p.route.Pattern != route.Pattern{}:
		f.changeRoute(p, add)
	case p.meter != "":
		f.changeIn(&f.byMeter, p.meter, p, add)
	case p.plan != "":
		f.changeIn(&f.byPlan, p.plan, p, add)
	default:
		f.others = f.changed(f.others, p, add)
	}
}

func (f *finder) changeIn(m *cowmap.Map[[]*planRule], key string, p *planRule, add bool) {
	if list := f.changed(m.Get(key), p, add); len(list) > 0 {
		m.Set(key, list)
	} else {
		m.Delete(key)
	}
}

// changed returns list with p added, or with p removed if add is false.
func (f *finder) changed(list []*planRule, p *planRule, add bool) []*planRule {
	switch {
	case !add:
		return slices.DeleteFunc(slices.Clone(list), func(o *planRule) bool { return o == p })
	case f.forked:
		list = slices.Clip(list)
	}
	return append(list, p)
}

// changeRoute adds or removes a rule in routes, under each pattern with which the rule compares routes.
func (f *finder) changeRoute(p *planRule, add bool) {
	var done []route.Pattern
	for way, patterns := range p.route.normal {
		if form := p.forms[way]; add && form != 0 && !slices.Contains(f.forms, form) {
			f.forms = append(slices.Clip(f.forms), form)
		}
		for _, pattern := range patterns {
			switch {
			case slices.Contains(done, pattern):
				continue
			case add:
				f.routes.Add(pattern, p)
			default:
				f.routes.Remove(pattern, p)
			}
			done = append(done, pattern)
		}
	}
}

// fork returns a copy of f that may be changed.
func (f *finder) fork() finder {
	return finder{
		byTenant: f.byTenant.Fork(), routes: f.routes.Fork(), byMeter: f.byMeter.Fork(), byPlan: f.byPlan.Fork(),
		others: f.others, forms: f.forms, forked: true,
	}
}

// byRoute appends to list the rules whose patterns match the route of req in one of its spellings. Some rules may be
// appended twice.
func (f *finder) byRoute(list []*planRule, req *Request) []*planRule {
	list = f.routes.Append(list, req.Route)
	for _, form := range f.forms {
		if name := req.routeIn(form); name != req.Route {
			list = f.routes.Append(list, name)
		}
	}
	return list
}

// find appends to list the rules that apply to req for a tenant of plan. Some rules may be appended twice.
func (f *finder) find(list []*planRule, req *Request, plan string) []*planRule {
	n := len(list)
	list = append(list, f.others...)
	list = append(list, f.byTenant.Get(req.Tenant)...)
	if req.Route != "" {
		list = f.byRoute(list, req)
	}
	if f.byMeter.Len() > 0 {
		for i := range req.Items {
			list = append(list, f.byMeter.Get(req.Items[i].Meter)...)
		}
	}
	list = append(list, f.byPlan.Get(plan)...)
	return appendApplicable(list[:n], list[n:], req, plan)
}

// appendApplicable appends to list those candidates that apply to req. candidates may follow list in the same array.
func appendApplicable(list, candidates []*planRule, req *Request, plan string) []*planRule {
	for _, p := range candidates {
		if p.appliesTo(req, plan) {
			list = append(list, p)
		}
	}
	return list
}

// rule returns the rule with this id for the plan's tenants. It returns nil if they have no such rule.
func (s *ruleSet) rule(id string) *planRule {
	if s.own != nil {
		if p := s.own.byID.Get(id); p != nil {
			return p
		}
	}
	return s.general.byID.Get(id)
}

// apply returns the rules that decide req for a tenant of plan, in the order of answers. It appends them to list,
// which must be empty.
func (s *ruleSet) apply(list []*planRule, req *Request, plan string) []*planRule {
	list = s.general.rates.find(list, req, plan)
	if s.own != nil {
		list = s.own.rates.find(s.unmasked(list), req, plan)
	}
	if len(list) < 2 {
		return list
	}
	if s.general.replacing.Len() > 0 || s.own != nil && s.own.replacing.Len() > 0 {
		list = s.dropReplaced(list)
	}
	slices.SortFunc(list, compareOrder)
	return slices.Compact(list)
}

// unmasked removes from list the general rules whose ids the plan uses for its own rules.
func (s *ruleSet) unmasked(list []*planRule) []*planRule {
	return slices.DeleteFunc(list, func(p *planRule) bool { return s.own.byID.Get(p.compiled.ID) != nil })
}

// appliesTo reports whether the rule applies to req from a tenant of plan. If the request does not name a dimension
// of the rule, the rule does not apply, because it has no bucket for the request.
func (r *limitRule) appliesTo(req *Request, plan string) bool {
	switch {
	case r.tenant != "" && r.tenant != req.Tenant,
		r.plan != "" && r.plan != plan,
		r.method != "" && r.method != req.Method,
		r.perSubject && req.Subject == "",
		r.perRoute && req.Route == "",
		r.perIP && !req.IP.IsValid():
		return false
	}
	if r.meter != "" && req.item(r.meter) == nil {
		return false
	}
	way := req.way()
	return r.route.matches(way, req.routeIn(r.forms[way]))
}
