package gate

import (
	"slices"

	"github.com/quotasvc/quotasvc/internal/kit/cowmap"
	"github.com/quotasvc/quotasvc/internal/kit/route"
	"github.com/quotasvc/quotasvc/internal/ratelimit/rule"
)

// ruleCounts holds upper bounds of the number of rate limits that can match one request. CheckRules compares their
// sum with MaxCharges. The maps are copied on write: call fork before a change.
//
// A rule of a tenant or plan is not counted if it replaces a general rule that is counted for all the same requests
// (isCounted). Rules of kind concurrency are not counted, because they apply to leases, not to requests.
type ruleCounts struct {
	tenants cowmap.Tally // number of rules of a tenant, by tenant
	plans   cowmap.Tally // number of other rules that match one plan, by plan

	// All other rules are general: they match all tenants and plans.
	chains   cowmap.Tally // number of general rules in a chain, by the last rule of the chain
	anywhere int          // number of general rules without route and meter
	meters   cowmap.Tally // number of general rules without route, by meter
	matched  cowmap.Tally // number of general rules with a route, by sample route that they match

	samples cowmap.Map[sampleUse] // sample routes of the patterns of all rules, including plans' own rules
}

// sampleUse describes a sample route, which route.Pattern.Sample returns for a pattern.
type sampleUse struct {
	rules  int    // number of rules whose pattern has this sample
	normal string // the sample, normalized in route.AllForms
}

func (c *ruleCounts) fork() ruleCounts {
	return ruleCounts{
		tenants: c.tenants.Fork(), plans: c.plans.Fork(), chains: c.chains.Fork(), anywhere: c.anywhere,
		meters: c.meters.Fork(), matched: c.matched.Fork(), samples: c.samples.Fork(),
	}
}

// maxGeneral returns an upper bound of the number of general rules that match a request for one meter. The route of
// the request is one of the samples.
func (c *ruleCounts) maxGeneral() int {
	return min(c.anywhere+c.meters.Most()+c.matched.Most(), c.chains.Len())
}

// maxPerTenant returns the largest number of rules that name one tenant.
func (c *ruleCounts) maxPerTenant() int { return c.tenants.Most() }

// change adds the difference between two indexes of general rules to the counts.
func (c *ruleCounts) change(before, now *ruleIndex, change *ruleChange) {
	each := func(rules []*planRule, add func(x *ruleIndex, p *planRule, by int), x *ruleIndex, by int) {
		for i, p := range rules {
			cowmap.Yield(i)
			add(x, p, by)
		}
	}
	each(change.left, c.count, before, -1)
	each(change.came, c.count, now, 1)
	each(change.left, c.nameSample, now, -1)
	each(change.came, c.nameSample, now, 1)
}

// count adds the number `by` to the counts to which the rule p belongs. x is the index of p.
func (c *ruleCounts) count(x *ruleIndex, p *planRule, by int) {
	switch {
	case p.compiled.Kind == rule.KindConcurrency:
	case p.tenant != "":
		if !x.isCounted(p.limitRule, p.link.up) {
			c.tenants.Add(p.tenant, by)
		}
	case p.plan != "":
		if !x.isCounted(p.limitRule, p.link.up) {
			c.plans.Add(p.plan, by)
		}
	default:
		c.countGeneral(p, by)
	}
}

func (c *ruleCounts) countGeneral(p *planRule, by int) {
	c.chains.Add(p.link.root.id, by)
	switch {
	case p.route.Pattern != route.Pattern{}:
		c.countRoute(p, by)
	case p.meter != "":
		c.meters.Add(p.meter, by)
	default:
		c.anywhere += by
	}
}

// isCounted reports whether r replaces a general rule that is counted for every request to which r applies. Then r
// itself is not counted. It examines the rules that r replaces, directly or through other rules, beginning with the
// given link.
func (x *ruleIndex) isCounted(r *limitRule, at *link) bool {
	for ; at != nil && !at.own; at = at.up {
		if q := x.byID.Get(at.id); q != nil && q.isGeneral() && q.isAsWideAs(r) {
			return true
		}
	}
	return false
}

// isGeneral reports whether the rule limits requests of all tenants and plans.
func (r *limitRule) isGeneral() bool {
	return r.tenant == "" && r.plan == "" && r.compiled.Kind != rule.KindConcurrency
}

// isAsWideAs reports whether r is counted for every route and meter for which o is counted.
func (r *limitRule) isAsWideAs(o *limitRule) bool {
	sameRoute := r.route.Pattern == o.route.Pattern && r.forms == o.forms
	return (r.meter == "" || r.meter == o.meter) && (sameRoute || r.route.Pattern == route.Pattern{})
}

// maxOwn returns the number of the plan's own rules that can apply in addition to the general rules.
func (s *ruleSet) maxOwn() (n int) {
	for _, p := range s.own.own {
		if p.compiled.Kind != rule.KindConcurrency && !s.general.isCounted(p.limitRule, p.link.up) {
			n++
		}
	}
	return n
}

// countRoute adds a number to the counts of the sample routes that the rule p matches.
func (c *ruleCounts) countRoute(p *planRule, by int) {
	var matched []string
	form := p.forms[atGateway]
	for name, use := range c.samples.All() {
		spelled := name
		switch form {
		case 0:
		case route.AllForms:
			spelled = use.normal
		default:
			spelled = route.Normalize(name, form)
		}
		if p.route.matches(atGateway, spelled) {
			matched = append(matched, name)
		}
	}
	for _, name := range matched {
		c.matched.Add(name, by)
	}
}

// nameSample adds its last argument to the number of rules whose pattern has the same sample as p. x is the index of
// general rules.
func (c *ruleCounts) nameSample(x *ruleIndex, p *planRule, by int) {
	if p.compiled.Kind == rule.KindConcurrency {
		return
	}
	name := p.route.Sample()
	use := c.samples.Get(name)
	use.rules += by
	switch {
	case use.rules <= 0:
		c.samples.Delete(name)
		c.matched.Add(name, -c.matched.Get(name))
		return
	case use.rules == by:
		req := Request{Route: name, Forwarded: " "} // as if a gateway forwarded it: then more spellings are equal
		use.normal = req.routeIn(route.AllForms)
		c.matched.Add(name, x.rates.matching(&req))
	}
	c.samples.Set(name, use)
}

// matching returns the number of general rules with a route that match the route of req.
func (f *finder) matching(req *Request) int {
	n := 0
	way := req.way()
	list := f.byRoute(nil, req)
	for i, p := range list {
		if p.plan == "" && p.route.matches(way, req.routeIn(p.forms[way])) && !slices.Contains(list[:i], p) {
			n++
		}
	}
	return n
}
