package gate

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/quotasvc/quotasvc/internal/body"
	"github.com/quotasvc/quotasvc/internal/catalog"
	"github.com/quotasvc/quotasvc/internal/ledger"
	"github.com/quotasvc/quotasvc/internal/ratelimit"
)

// samplesMax bounds the sample requests of one change of the catalogue: about 10 ms of the administrator's time. A
// combination of rules that they miss is refused when a request meets it.
const samplesMax = 20_000

// namedMax bounds the rules that an error names: enough to see what they have in common.
const namedMax = 20

// CheckRules returns a fault if more rules can apply to a request for one meter than can be decided together. It is the
// catalogue's StoreConfig.CheckRules. It tries sample requests that name every dimension: for each plan, tenant and meter that
// a rule names, and one route of each pattern. It does not try other routes on which patterns overlap, nor requests for
// several meters. Those are refused when they come.
func CheckRules(s *catalog.Snapshot) []catalog.RuleFault {
	c := compileRules(s, func(string, error) {})
	t := &trial{}
	views := map[string]*ruleSet{"": c.general}
	for _, p := range c.general.byID {
		if p.plan != "" {
			views[p.plan] = c.general
		}
	}
	for plan, set := range c.plans {
		views[plan] = set
	}
	for plan, set := range views {
		if fault := t.tryTenants(set, plan); fault != nil {
			return []catalog.RuleFault{*fault}
		}
	}
	return nil
}

// trial looks for a request to which too many rules apply.
type trial struct{ samples int }

func (t *trial) tryTenants(set *ruleSet, plan string) *catalog.RuleFault {
	var all []*planRule
	tenants := map[string]bool{"": true} // "" stands for tenants that no rule names
	for _, p := range set.byID {
		if p.compiled.Kind.String() != catalog.KindConcurrency && (p.plan == "" || p.plan == plan) {
			all = append(all, p)
			tenants[p.tenant] = true
		}
	}
	for tenant := range tenants {
		matching := filter(all, func(p *planRule) bool { return p.tenant == "" || p.tenant == tenant })
		if fault := t.tryMeters(set, plan, tenant, matching); fault != nil {
			return fault
		}
	}
	return nil
}

func (t *trial) tryMeters(set *ruleSet, plan, tenant string, all []*planRule) *catalog.RuleFault {
	if len(all) <= ratelimit.MaxCharges {
		return nil
	}
	meters := map[string]bool{"": true}
	for _, p := range all {
		meters[p.meter] = true
	}
	for meter := range meters {
		matching := filter(all, func(p *planRule) bool { return p.meter == "" || p.meter == meter })
		if len(matching) <= ratelimit.MaxCharges {
			continue
		}
		type sample struct{ route, method string }
		samples := map[sample]bool{}
		for _, p := range matching {
			samples[sample{p.route.Sample(), p.method}] = true
		}
		for s := range samples {
			req := &Request{ // from a gateway: there more spellings are equal
				Tenant: tenant, Subject: "subject", Route: s.route, Method: s.method, Forwarded: " ", IP: netip.AddrFrom4([4]byte{192, 0, 2, 1}),
				Items: []ledger.Item{{Meter: meter, Amount: 1}},
			}
			if t.samples++; t.samples > samplesMax {
				return nil
			}
			if applied := set.apply(nil, req, plan); len(applied) > ratelimit.MaxCharges {
				return tooMany(req, plan, applied)
			}
		}
	}
	return nil
}

func filter(rules []*planRule, keep func(*planRule) bool) []*planRule {
	var out []*planRule
	for _, p := range rules {
		if keep(p) {
			out = append(out, p)
		}
	}
	return out
}

func tooMany(req *Request, plan string, applied []*planRule) *catalog.RuleFault {
	about := []string{"route " + req.Route}
	for _, property := range [][2]string{{"meter", req.Items[0].Meter}, {"tenant", req.Tenant}, {"plan", plan}} {
		if property[1] != "" {
			about = append(about, property[0]+" "+property[1])
		}
	}
	last, names := applied[len(applied)-1], namesOf(applied)
	if more := len(names) - namedMax; more > 0 {
		names = append(names[:namedMax], fmt.Sprintf("and %d more", more))
	}
	fault := &catalog.RuleFault{Rule: last.compiled.ID, Fault: body.Fault{Field: "match", Message: fmt.Sprintf(
		"would let %d limits apply to one request (%s), and at most %d can be decided together: narrow some, or make some replace others. They are %s",
		len(applied), strings.Join(about, ", "), ratelimit.MaxCharges, strings.Join(names, ", "))}}
	if last.own {
		fault.Plan = plan
	}
	return fault
}
