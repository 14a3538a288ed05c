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

// fewRules is the number of applicable rules up to which a request allocates no list of them: the most rules that can
// be decided, and some rules that others replace.
const fewRules = 2 * ratelimit.MaxCharges

// ruleSet has the rules for the tenants of one plan: the plan's own rules, and the general rules whose ids the plan
// does not use. All sets share the general rules. A ruleSet does not change.
type ruleSet struct {
	own     *ruleIndex // nil: the plan has no limits of its own
	general *ruleIndex

	// rerooted means that general rules replace a rule of the plan: their chains then differ from the chains of the
	// general rules alone.
	rerooted bool
}

// ruleIndex finds rules by the fields of a request, so the cost does not grow with the number of rules. The index of
// the next snapshot shares equal parts with it: see with.
type ruleIndex struct {
	own  []*planRule // the rules of a plan, in order; nil for general rules
	byID cowmap.Map[*planRule]

	// replacing has the number of rules that replace a rule, by the id of the replaced rule, which need not exist.
	replacing cowmap.Map[int]

	rates, leases finder // leases has the rules of kind concurrency: they apply to leases, and not to requests
}

// finder has each rule in the first of these fields that fits the rule.
type finder struct {
	byTenant cowmap.Map[[]*planRule]
	routes   route.Index[*planRule]
	byMeter  cowmap.Map[[]*planRule]
	byPlan   cowmap.Map[[]*planRule]
	others   []*planRule
	forms    []route.Forms // forms in which a route is looked up in routes, in addition to the route as it is
	forked   bool          // an earlier finder has the same lists
}

// planRule is a rule of a ruleSet. It does not change; the next snapshots have the same planRule until its limit
// changes.
type planRule struct {
	*limitRule

	own   bool  // it is the plan's own, not a general rule
	order int   // a plan's own rule: its position in answers, before the general rules, which are in order of ids
	link  *link // its position in its chain
}

// compareOrder orders rules as answers do.
func compareOrder(a, b *planRule) int {
	if a.order != b.order {
		return cmp.Compare(a.order, b.order)
	}
	return strings.Compare(a.compiled.ID, b.compiled.ID)
}

// newGeneralRules makes the index of the general rules.
func newGeneralRules(rules []*limitRule) *ruleIndex {
	x, all := newRuleIndex(rules, false)
	x.resolveReplaces(all)
	return x
}

// newRuleIndex makes an index, and returns its rules in their order.
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

// each returns all rules, in no order.
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

// newRuleSet makes the set of a plan. own are the plan's rules.
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

// change adds or removes a rule.
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

// changed returns list with or without a rule.
func (f *finder) changed(list []*planRule, p *planRule, add bool) []*planRule {
	switch {
	case !add:
		return slices.DeleteFunc(slices.Clone(list), func(o *planRule) bool { return o == p })
	case f.forked:
		list = slices.Clip(list)
	}
	return append(list, p)
}

// changeRoute adds or removes a rule under each pattern with which it compares routes.
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

// fork returns a finder that may be changed and begins as a copy of f.
func (f *finder) fork() finder {
	return finder{
		byTenant: f.byTenant.Fork(), routes: f.routes.Fork(), byMeter: f.byMeter.Fork(), byPlan: f.byPlan.Fork(),
		others: f.others, forms: f.forms, forked: true,
	}
}

// byRoute appends to list the rules whose patterns match the route of req in one of its spellings, some of them twice.
func (f *finder) byRoute(list []*planRule, req *Request) []*planRule {
	list = f.routes.Append(list, req.Route)
	for _, form := range f.forms {
		if name := req.routeIn(form); name != req.Route {
			list = f.routes.Append(list, name)
		}
	}
	return list
}

// find appends to list the rules that apply to req for a tenant of plan, some of them twice.
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

// appendApplicable appends to list the candidates that apply. candidates may follow list in the same array.
func appendApplicable(list, candidates []*planRule, req *Request, plan string) []*planRule {
	for _, p := range candidates {
		if p.appliesTo(req, plan) {
			list = append(list, p)
		}
	}
	return list
}

// rule returns the rule named id. It returns nil if the plan's tenants have no such rule.
func (s *ruleSet) rule(id string) *planRule {
	if s.own != nil {
		if p := s.own.byID.Get(id); p != nil {
			return p
		}
	}
	return s.general.byID.Get(id)
}

// apply appends to list, which is empty, the rules that decide req for a tenant of plan, in the order of answers.
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

// unmasked removes from list the general rules whose ids the plan uses.
func (s *ruleSet) unmasked(list []*planRule) []*planRule {
	return slices.DeleteFunc(list, func(p *planRule) bool { return s.own.byID.Get(p.compiled.ID) != nil })
}

// appliesTo reports whether the rule applies to req from a tenant of plan. A rule with a dimension that the request
// does not name does not apply, because it has no bucket for the request.
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
