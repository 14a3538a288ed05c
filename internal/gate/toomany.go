package gate

import (
	"fmt"
	"slices"

	"github.com/quotasvc/quotasvc/internal/catalog"
	"github.com/quotasvc/quotasvc/internal/kit/body"
	"github.com/quotasvc/quotasvc/internal/kit/cowmap"
	"github.com/quotasvc/quotasvc/internal/ratelimit"
)

// CheckRules returns a fault if more than ratelimit.MaxCharges rules may apply to a request for one meter. It is the
// catalogue's StoreConfig.CheckRules.
//
// It does not try requests. It adds three numbers from ruleCounts: the largest number of general rules for a request,
// of rules of a plan and of rules of a tenant. So it also refuses limits that never apply together to one request.
// More rules than this sum may apply to a request for several meters. More may also apply to a request whose route
// matches two overlapping patterns, if neither pattern contains the other. Such a request fails with TooManyLimits.
//
// A catalogue that already exceeds the bound can still be changed if its sum does not rise, because earlier versions
// of the service counted exactly.
func CheckRules(after, before *catalog.Snapshot) []catalog.RuleFault {
	most := compileRules(after, before).mostPerRequest()
	if most.sum() <= ratelimit.MaxCharges {
		return nil
	}
	if known, _ := before.Compiled.(*compiledRules); known != nil {
		if was := known.mostPerRequest(); most.sum() <= was.sum() {
			return nil
		}
	}
	fault := catalog.RuleFault{Fault: body.Fault{Field: "match", Message: most.refusal()}}
	fault.Plan, fault.Rule = lastChanged(after, before)
	return []catalog.RuleFault{fault}
}

// mostRules is the largest number of rules that can apply to a request. It is the sum of general rules, rules of a
// plan and rules of a tenant.
type mostRules struct {
	counts  *ruleCounts
	general int
	plan    int
	ofPlan  string
	tenant  int
}

// mostPerRequest returns the largest number of rules that can apply to a request.
func (c *compiledRules) mostPerRequest() mostRules {
	most := mostRules{
		counts: &c.counts, general: c.counts.maxGeneral(), plan: c.counts.plans.Most(), tenant: c.counts.maxPerTenant(),
	}
	most.ofPlan = firstWith(&c.counts.plans, most.plan)
	for name, set := range c.plans {
		most.add(name, set)
	}
	for version, set := range c.older {
		most.add(version.Plan, set)
	}
	return most
}

// add counts the rules of a version of a plan.
func (m *mostRules) add(plan string, set *ruleSet) {
	general := m.counts.plans.Get(plan)
	if general+len(set.own.own) < m.plan {
		return
	}
	if n := general + set.maxOwn(); n > m.plan || n == m.plan && plan < m.ofPlan {
		m.plan = n
		m.ofPlan = plan
	}
}

func (m *mostRules) sum() int { return m.general + m.plan + m.tenant }

// refusal returns the message of the fault: the sum, and how to reduce it.
func (m *mostRules) refusal() string {
	text := fmt.Sprintf("would let up to %d limits apply to one request, and at most %d can be decided together: ",
		m.sum(), ratelimit.MaxCharges)
	text += fmt.Sprintf("%d of all tenants and plans", m.general)
	route, meter := m.counts.matched.Most(), m.counts.meters.Most()
	if route > 0 {
		text += fmt.Sprintf(" (%d of them match route %s)", route, firstWith(&m.counts.matched, route))
	}
	if meter > 0 {
		text += fmt.Sprintf(" (%d of them match meter %s)", meter, firstWith(&m.counts.meters, meter))
	}
	if m.plan > 0 {
		text += fmt.Sprintf(", %d of plan %s", m.plan, m.ofPlan)
	}
	if m.tenant > 0 {
		text += fmt.Sprintf(", %d of tenant %s", m.tenant, firstWith(&m.counts.tenants, m.tenant))
	}
	return text + ". Delete some, narrow those of all tenants and plans to a route or meter, " +
		"or let those of a plan or tenant replace one of the same or a wider match"
}

// firstWith returns the first key, in alphabetical order, that has this count.
func firstWith(t *cowmap.Tally, count int) (first string) {
	for key, n := range t.All() {
		if n == count && (first == "" || key < first) {
			first = key
		}
	}
	return first
}

// lastChanged returns the last limit that is new or changed, and its plan if the limit belongs to a plan. If limits
// were only deleted, it returns the last remaining limit.
func lastChanged(after, before *catalog.Snapshot) (plan, name string) {
	put, plans := after.Changes(before)
	if len(put) > 0 {
		return "", put[len(put)-1].Rule
	}
	for _, p := range slices.Backward(plans) {
		if n := len(p.Limits); n > 0 {
			return p.ID, p.Limits[n-1].Rule
		}
	}
	if n := len(after.Limits); n > 0 {
		return "", after.Limits[n-1].Rule
	}
	return "", ""
}
