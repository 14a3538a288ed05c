package gate

import (
	"cmp"
	"runtime"
	"slices"

	"github.com/quotasvc/quotasvc/internal/ratelimit"
	"github.com/quotasvc/quotasvc/internal/ratelimit/rule"
	"github.com/quotasvc/quotasvc/internal/route"
)

// fewRules is the number of applicable rules up to which a request allocates no list of them: the most that can be decided,
// and some that others replace.
const fewRules = 2 * ratelimit.MaxCharges

// ruleSet has the rules for the tenants of one plan: the plan's own, and the general rules whose ids the plan does not use. All sets share
// the general rules. A ruleSet does not change.
type ruleSet struct {
	own     *ruleIndex // nil: the plan has no limits of its own
	general *ruleIndex

	// rerooted says that general rules replace a rule of the plan: their chains are then others than those of the general rules alone.
	rerooted bool
}

// ruleIndex finds rules by what a request names, so the cost does not grow with the number of rules.
type ruleIndex struct {
	all  []*planRule // in order
	byID map[string]*planRule

	// replacing has the rules that replace another one, by the id of that one, which need not exist.
	replacing map[string][]*planRule

	rates, leases finder // of kind concurrency are the leases: no request meets them, only leases do
}

// finder has each rule in the first of these that fits it.
type finder struct {
	byTenant map[string][]*planRule
	routes   route.Index[*planRule]
	byMeter  map[string][]*planRule
	byPlan   map[string][]*planRule
	others   []*planRule
	forms    []route.Forms // in which routes are looked up in routes, beside the route as it is
}

// planRule is a rule of a ruleSet.
type planRule struct {
	*limitRule

	own      bool      // it is the plan's own, not a general rule
	order    int       // its place in answers
	replaced *planRule // the rule it replaces, for a general rule among the general ones; nil: none
	root     *planRule // the last rule of its chain, which replaces none: itself if it replaces none
}

// newGeneralRules makes the index of the rules that no plan has of its own.
func newGeneralRules(rules []*limitRule) *ruleIndex {
	x := newRuleIndex(rules, false)
	x.resolveReplaces()
	return x
}

// yieldEvery is the number of rules after which a long computation lets requests run: half a millisecond.
const yieldEvery = 256

// yield is called in computations about all rules. They take tens of milliseconds with 20,000 rules, and Go would let one of them have a
// processor for 10 ms at a time.
func yield(i int) {
	if i%yieldEvery == yieldEvery-1 {
		runtime.Gosched()
	}
}

func newRuleIndex(rules []*limitRule, own bool) *ruleIndex {
	x := &ruleIndex{all: make([]*planRule, 0, len(rules)), byID: make(map[string]*planRule, len(rules)), replacing: map[string][]*planRule{}}
	members := make([]planRule, len(rules))
	for i, r := range rules {
		yield(i)
		if x.byID[r.compiled.ID] != nil {
			continue
		}
		p := &members[i]
		*p = planRule{limitRule: r, own: own, order: i}
		if own {
			p.order -= len(rules) // before the general ones
		}
		x.all, x.byID[r.compiled.ID] = append(x.all, p), p
		if r.replaces != "" {
			x.replacing[r.replaces] = append(x.replacing[r.replaces], p)
		}
		if r.compiled.Kind == rule.KindConcurrency {
			x.leases.add(p)
		} else {
			x.rates.add(p)
		}
	}
	return x
}

// newRuleSet makes the set of a plan. own are the plan's rules.
func newRuleSet(own []*limitRule, general *ruleIndex) *ruleSet {
	s := &ruleSet{general: general}
	if len(own) == 0 {
		return s
	}
	s.own = newRuleIndex(own, true)
	for _, p := range s.own.all {
		s.rerooted = s.rerooted || len(general.replacing[p.compiled.ID]) > 0
	}
	s.resolveOwn()
	return s
}

func (f *finder) add(p *planRule) {
	put := func(m *map[string][]*planRule, key string) {
		if *m == nil {
			*m = map[string][]*planRule{}
		}
		(*m)[key] = append((*m)[key], p)
	}
	switch {
	case p.tenant != "":
		put(&f.byTenant, p.tenant)
	case p.route.Pattern != route.Pattern{}:
		f.addRoute(p)
	case p.meter != "":
		put(&f.byMeter, p.meter)
	case p.plan != "":
		put(&f.byPlan, p.plan)
	default:
		f.others = append(f.others, p)
	}
}

// addRoute adds a rule under each pattern with which it compares routes.
func (f *finder) addRoute(p *planRule) {
	var added []route.Pattern
	for way, patterns := range p.route.normal {
		if form := p.forms[way]; form != 0 && !slices.Contains(f.forms, form) {
			f.forms = append(f.forms, form)
		}
		for _, pattern := range patterns {
			if !slices.Contains(added, pattern) {
				added = append(added, pattern)
				f.routes.Add(pattern, p)
			}
		}
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
	if len(f.byTenant) > 0 {
		list = append(list, f.byTenant[req.Tenant]...)
	}
	if req.Route != "" {
		list = f.byRoute(list, req)
	}
	if len(f.byMeter) > 0 {
		for i := range req.Items {
			list = append(list, f.byMeter[req.Items[i].Meter]...)
		}
	}
	if len(f.byPlan) > 0 {
		list = append(list, f.byPlan[plan]...)
	}
	return appendApplicable(list[:n], list[n:], req, plan)
}

// appendApplicable appends those of candidates that apply. They may be what follows list in its array.
func appendApplicable(list, candidates []*planRule, req *Request, plan string) []*planRule {
	for _, p := range candidates {
		if p.appliesTo(req, plan) {
			list = append(list, p)
		}
	}
	return list
}

// rule returns the rule named id; nil: the plan's tenants have none.
func (s *ruleSet) rule(id string) *planRule {
	if s.own != nil {
		if p := s.own.byID[id]; p != nil {
			return p
		}
	}
	return s.general.byID[id]
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
	if len(s.general.replacing) > 0 || s.own != nil && len(s.own.replacing) > 0 {
		list = s.dropReplaced(list)
	}
	slices.SortFunc(list, func(a, b *planRule) int { return cmp.Compare(a.order, b.order) })
	return slices.Compact(list)
}

// unmasked removes from list the general rules whose ids the plan uses.
func (s *ruleSet) unmasked(list []*planRule) []*planRule {
	return slices.DeleteFunc(list, func(p *planRule) bool { return s.own.byID[p.compiled.ID] != nil })
}

// appliesTo reports whether the rule applies to req from a tenant of plan. A rule with a dimension that the request does not
// name does not apply, because it has no bucket for the request.
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
