package gate

import (
	"cmp"
	"slices"

	"github.com/quotasvc/quotasvc/internal/catalog"
	"github.com/quotasvc/quotasvc/internal/ratelimit"
	"github.com/quotasvc/quotasvc/internal/route"
)

// fewRules is the number of applicable rules up to which a request allocates no list of them: the most that can be decided,
// and some that others replace.
const fewRules = 2 * ratelimit.MaxCharges

// ruleSet has the rules for the tenants of one plan. Its maps find the rules that may apply to a request by what the request
// names, so the cost does not grow with the number of rules. A ruleSet does not change.
type ruleSet struct {
	byID map[string]*planRule

	// Each rule is in the first of these that fits it.
	byTenant map[string][]*planRule
	byRoute  map[string][]*planRule // the route has no wildcard
	byPrefix map[string][]*planRule // the route's text before its first wildcard, not empty
	byMeter  map[string][]*planRule
	byPlan   map[string][]*planRule
	others   []*planRule

	prefixes  []int         // the lengths of the keys of byPrefix
	forms     []route.Forms // in which routes are looked up in byRoute and byPrefix, beside the route as it is
	hasChains bool          // some rules replace others
}

// planRule is a rule of a ruleSet.
type planRule struct {
	*limitRule

	own      bool      // it is the plan's own, not a general rule
	order    int       // its place in answers
	replaced *planRule // the rule it replaces; nil: none
	chain    *planRule // the last rule of its chain, which replaces none; nil: the rule is in no chain
}

// newRuleSet makes the set of a plan's own rules, and of the general rules whose ids the plan does not use. Rules of kind
// concurrency can be found by id but apply to no request; only leases use them.
func newRuleSet(own, general []*limitRule) *ruleSet {
	s := &ruleSet{
		byID:     make(map[string]*planRule, len(own)+len(general)),
		byTenant: map[string][]*planRule{}, byRoute: map[string][]*planRule{}, byPrefix: map[string][]*planRule{}, byMeter: map[string][]*planRule{},
		byPlan: map[string][]*planRule{},
	}
	var all []*planRule
	for i, rules := range [][]*limitRule{own, general} {
		for _, r := range rules {
			if s.byID[r.compiled.ID] == nil {
				p := &planRule{limitRule: r, own: i == 0, order: len(all)}
				s.byID[r.compiled.ID] = p
				all = append(all, p)
			}
		}
	}
	s.resolveReplaces(all)
	for _, p := range all {
		if p.compiled.Kind.String() != catalog.KindConcurrency {
			s.index(p)
		}
	}
	return s
}

func (s *ruleSet) index(p *planRule) {
	switch {
	case p.tenant != "":
		s.byTenant[p.tenant] = append(s.byTenant[p.tenant], p)
	case p.route.Literal() != "":
		s.indexRoute(p)
	case p.meter != "":
		s.byMeter[p.meter] = append(s.byMeter[p.meter], p)
	case p.plan != "":
		s.byPlan[p.plan] = append(s.byPlan[p.plan], p)
	default:
		s.others = append(s.others, p)
	}
}

// indexRoute indexes a rule under each pattern that it compares routes with.
func (s *ruleSet) indexRoute(p *planRule) {
	add := func(in map[string][]*planRule, literal string) {
		if n := len(in[literal]); n == 0 || in[literal][n-1] != p {
			in[literal] = append(in[literal], p)
		}
	}
	for way, patterns := range p.route.normal {
		if f := p.forms[way]; f != 0 && !slices.Contains(s.forms, f) {
			s.forms = append(s.forms, f)
		}
		for _, pattern := range patterns {
			literal := pattern.Literal()
			if pattern.Exact() {
				add(s.byRoute, literal)
				continue
			}
			add(s.byPrefix, literal)
			if !slices.Contains(s.prefixes, len(literal)) {
				s.prefixes = append(s.prefixes, len(literal))
			}
		}
	}
}

// apply appends to list, which is empty, the rules that decide req for a tenant of plan, in the order of answers.
func (s *ruleSet) apply(list []*planRule, req *Request, plan string) []*planRule {
	list = appendApplicable(list, s.others, req, plan)
	if len(s.byTenant) > 0 {
		list = appendApplicable(list, s.byTenant[req.Tenant], req, plan)
	}
	if req.Route != "" {
		list = s.appendByRoute(list, req.Route, req, plan)
		for _, f := range s.forms {
			if name := req.routeIn(f); name != req.Route {
				list = s.appendByRoute(list, name, req, plan)
			}
		}
	}
	if len(s.byMeter) > 0 {
		for i := range req.Items {
			list = appendApplicable(list, s.byMeter[req.Items[i].Meter], req, plan)
		}
	}
	if len(s.byPlan) > 0 {
		list = appendApplicable(list, s.byPlan[plan], req, plan)
	}
	if s.hasChains {
		list = dropReplaced(list)
	}
	slices.SortFunc(list, func(a, b *planRule) int { return cmp.Compare(a.order, b.order) })
	return slices.Compact(list) // two spellings of a route may find the same rule
}

// appendByRoute appends the rules that are indexed under a spelling of req's route.
func (s *ruleSet) appendByRoute(list []*planRule, name string, req *Request, plan string) []*planRule {
	if len(s.byRoute) > 0 {
		list = appendApplicable(list, s.byRoute[name], req, plan)
	}
	for _, n := range s.prefixes {
		if n <= len(name) {
			list = appendApplicable(list, s.byPrefix[name[:n]], req, plan)
		}
	}
	return list
}

func appendApplicable(list, candidates []*planRule, req *Request, plan string) []*planRule {
	for _, p := range candidates {
		if p.appliesTo(req, plan) {
			list = append(list, p)
		}
	}
	return list
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
