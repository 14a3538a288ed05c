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

// samplesMax bounds the requests that a change of the catalogue is tried with: 10 ms or so of an administrator's time. What
// escapes it is refused when a request comes.
const samplesMax = 20_000

// namedMax is how many rules an error names: enough to see what they have in common.
const namedMax = 20

// CheckRules says whether a request for one meter can meet more rules than can be decided together: the catalogue's
// StoreConfig.CheckRules. It tries requests that name everything: of each plan and tenant that rules name, of each meter, on a
// route of each pattern. Patterns that overlap elsewhere, and requests for several meters, are not foreseen; they are refused
// when they come.
func CheckRules(s *catalog.Snapshot) []catalog.RuleFault {
	c := compileTerms(s, func(string, error) {})
	t := &trial{}
	views := map[string]*ruleSet{"": c.general}
	for _, m := range c.general.byID {
		if m.plan != "" {
			views[m.plan] = c.general
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

// trial looks for a request that meets too many rules.
type trial struct{ samples int }

func (t *trial) tryTenants(set *ruleSet, plan string) *catalog.RuleFault {
	var all []*member
	tenants := map[string]bool{"": true} // "" is one that no rule names
	for _, m := range set.byID {
		if m.compiled.Kind.String() != catalog.KindConcurrency && (m.plan == "" || m.plan == plan) {
			all = append(all, m)
			tenants[m.tenant] = true
		}
	}
	for tenant := range tenants {
		meant := filter(all, func(m *member) bool { return m.tenant == "" || m.tenant == tenant })
		if fault := t.tryMeters(set, plan, tenant, meant); fault != nil {
			return fault
		}
	}
	return nil
}

func (t *trial) tryMeters(set *ruleSet, plan, tenant string, all []*member) *catalog.RuleFault {
	if len(all) <= ratelimit.MaxCharges {
		return nil
	}
	meters := map[string]bool{"": true}
	for _, m := range all {
		meters[m.meter] = true
	}
	for meter := range meters {
		meant := filter(all, func(m *member) bool { return m.meter == "" || m.meter == meter })
		if len(meant) <= ratelimit.MaxCharges {
			continue
		}
		routes := map[string]bool{}
		for _, m := range meant {
			routes[m.route.Sample()] = true
		}
		for route := range routes {
			req := &Request{
				Tenant: tenant, Subject: "subject", Route: route, IP: netip.AddrFrom4([4]byte{192, 0, 2, 1}),
				Items: []ledger.Item{{Meter: meter, Amount: 1}},
			}
			if t.samples++; t.samples > samplesMax {
				return nil
			}
			if met := set.apply(nil, req, plan); len(met) > ratelimit.MaxCharges {
				return tooMany(req, plan, met)
			}
		}
	}
	return nil
}

func filter(members []*member, keep func(*member) bool) []*member {
	var out []*member
	for _, m := range members {
		if keep(m) {
			out = append(out, m)
		}
	}
	return out
}

func tooMany(req *Request, plan string, met []*member) *catalog.RuleFault {
	about := []string{"route " + req.Route}
	for _, property := range [][2]string{{"meter", req.Items[0].Meter}, {"tenant", req.Tenant}, {"plan", plan}} {
		if property[1] != "" {
			about = append(about, property[0]+" "+property[1])
		}
	}
	last, names := met[len(met)-1], namesOf(met)
	if more := len(names) - namedMax; more > 0 {
		names = append(names[:namedMax], fmt.Sprintf("and %d more", more))
	}
	fault := &catalog.RuleFault{Rule: last.compiled.ID, Fault: body.Fault{Field: "match", Message: fmt.Sprintf(
		"would let %d limits apply to one request (%s), and at most %d can be decided together: narrow some or let them replace each other; they are %s",
		len(met), strings.Join(about, ", "), ratelimit.MaxCharges, strings.Join(names, ", "))}}
	if last.own {
		fault.Plan = plan
	}
	return fault
}
