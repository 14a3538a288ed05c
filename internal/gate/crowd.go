package gate

import (
	"slices"

	"github.com/quotasvc/quotasvc/internal/kit/cowmap"
	"github.com/quotasvc/quotasvc/internal/kit/route"
	"github.com/quotasvc/quotasvc/internal/ratelimit/rule"
)

// crowd counts general rules, but leases, so that CheckRules knows without a look at the rules that no request has too many. A version for the next
// snapshot is forked and changed.
type crowd struct {
	tenants cowmap.Tally // rules of tenants, by tenant
	plans   cowmap.Tally // other rules of plans, by plan

	// The rest, which name neither tenant nor plan:
	chains   cowmap.Tally // by the last rule of their chains
	anywhere int          // those without route and meter
	meters   cowmap.Tally // those without route, by meter
	matched  cowmap.Tally // those with a route, by the samples that they match

	samples cowmap.Map[sampleUse] // samples of the routes of all rules, plans' own ones too
}

// sampleUse is a route.Pattern.Sample.
type sampleUse struct {
	rules  int    // the number of rules that have it
	normal string // it, in route.AllForms
}

func (c *crowd) fork() crowd {
	return crowd{
		tenants: c.tenants.Fork(), plans: c.plans.Fork(), chains: c.chains.Fork(), anywhere: c.anywhere, meters: c.meters.Fork(), matched: c.matched.Fork(),
		samples: c.samples.Fork(),
	}
}

// most returns a number that no request for one meter exceeds, by the rules that name neither tenant nor plan: it is that of a sample.
func (c *crowd) most() int {
	return min(c.anywhere+c.meters.Most()+c.matched.Most(), c.chains.Len())
}

// change counts the difference to x, the index now.
func (c *crowd) change(x *ruleIndex, change *ruleChange) {
	for i, p := range change.left {
		cowmap.Yield(i)
		c.count(p, -1)
	}
	for i, p := range change.came {
		cowmap.Yield(i)
		c.count(p, 1)
	}
	for i, p := range change.left {
		cowmap.Yield(i)
		c.nameSample(x, p, -1)
	}
	for i, p := range change.came {
		cowmap.Yield(i)
		c.nameSample(x, p, 1)
	}
}

// count adds by to the counts of a rule.
func (c *crowd) count(p *planRule, by int) {
	switch {
	case p.compiled.Kind == rule.KindConcurrency:
		return
	case p.tenant != "":
		c.tenants.Add(p.tenant, by)
		return
	case p.plan != "":
		c.plans.Add(p.plan, by)
		return
	}
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

// countRoute adds by to the count of each sample that a rule matches.
func (c *crowd) countRoute(p *planRule, by int) {
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

// nameSample notes that one more rule has its sample, or one less. x is the index of general rules.
func (c *crowd) nameSample(x *ruleIndex, p *planRule, by int) {
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
		req := sample{route: name}.request()
		use.normal = req.routeIn(route.AllForms)
		c.matched.Add(name, x.rates.matching(req))
	}
	c.samples.Set(name, use)
}

// matching returns the number of rules with a route but without tenant and plan that match the route of req.
func (f *finder) matching(req *Request) int {
	n, way := 0, req.way()
	list := f.byRoute(nil, req)
	for i, p := range list {
		if p.plan == "" && p.route.matches(way, req.routeIn(p.forms[way])) && !slices.Contains(list[:i], p) {
			n++
		}
	}
	return n
}
