package gate

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/quotasvc/quotasvc/internal/catalog"
	"github.com/quotasvc/quotasvc/internal/ledger"
	"github.com/quotasvc/quotasvc/internal/ratelimit"
)

// tooManyByFullScan tries every request that CheckRules speaks of.
func tooManyByFullScan(s *catalog.Snapshot) bool {
	c := compileRules(s, nil)
	plans, tenants, meters, routes := []string{""}, []string{""}, []string{""}, []string{"/"}
	note := func(rules []*planRule) {
		for _, p := range rules {
			plans, tenants, meters, routes = append(plans, p.plan), append(tenants, p.tenant), append(meters, p.meter), append(routes, p.route.Sample())
		}
	}
	note(c.general.general.all)
	for plan, set := range c.plans {
		plans = append(plans, plan)
		note(set.own.all)
	}
	distinct := func(of []string) []string {
		slices.Sort(of)
		return slices.Compact(of)
	}
	for _, plan := range distinct(plans) {
		set := c.general
		if own := c.plans[plan]; own != nil {
			set = own
		}
		for _, tenant := range distinct(tenants) {
			for _, meter := range distinct(meters) {
				for _, route := range distinct(routes) {
					req := &Request{Tenant: tenant, Subject: "s", Route: route, Forwarded: " ", IP: netip.MustParseAddr("192.0.2.1"), Items: []ledger.Item{{Meter: meter, Amount: 1}}}
					if len(set.apply(nil, req, plan)) > ratelimit.MaxCharges {
						return true
					}
				}
			}
		}
	}
	return false
}

// A change is refused if and only if a request that is tried has too many rules afterwards, whatever was changed, and however often it is asked.
func TestCheckRules_AfterEveryChange_EqualsFullScan(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		draw := func(at, prefix string) (limits []*catalog.Limit) {
			for i := range rapid.IntRange(0, 9).Draw(rt, at+" groups") {
				group := fmt.Sprint(at, " group ", i, " ")
				oneOf := func(what string, of ...string) string { return rapid.SampledFrom(of).Draw(rt, group+what) }
				match := catalog.Match{
					Route: oneOf("route", "", "", "/a", "/a/*", "/a/**", "/*/b"), Meter: oneOf("meter", "", "", "m", "n"), Plan: oneOf("plan", "", "", "p", "q"),
					Tenant: oneOf("tenant", "", "", "t", "u"),
				}
				replaces := oneOf("replaces", "", "", "", "g0.0", "g1.0", "o0.0")
				for j := range rapid.IntRange(1, 9).Draw(rt, group+"size") {
					l := limitNamed(fmt.Sprintf("%s%d.%d", prefix, i, j), replaces, match)
					limits = append(limits, &l)
				}
			}
			return limits
		}
		plan := func(at, id string) *catalog.Plan {
			p := &catalog.Plan{ID: id}
			for _, l := range draw(at+" "+id, rapid.SampledFrom([]string{"o", "g"}).Draw(rt, at+id+" prefix")) {
				l.Match.Plan = ""
				p.Limits = append(p.Limits, *l)
			}
			return p
		}
		before := &catalog.Snapshot{}
		for step := range 4 {
			at := fmt.Sprint("step ", step)
			after := &catalog.Snapshot{Limits: slices.Clone(before.Limits), Plans: map[string]*catalog.Plan{}}
			for id, p := range before.Plans {
				after.Plans[id] = p
			}
			switch what := rapid.IntRange(0, 3).Draw(rt, at); {
			case what == 0 || step == 0:
				after.Limits = draw(at, "g")
				after.Plans["p"] = plan(at, "p")
			case what == 1:
				after.Plans["q"] = plan(at, "q")
			default: // one limit
				changed := limitNamed("g0.0", rapid.SampledFrom([]string{"", "g1.0"}).Draw(rt, at+"replaces"), catalog.Match{Tenant: rapid.SampledFrom([]string{"", "t"}).Draw(rt, at+"tenant")})
				after.Limits = append(slices.DeleteFunc(after.Limits, func(l *catalog.Limit) bool { return l.Rule == changed.Rule }), &changed)
			}
			faults := CheckRules(after, before)
			if got, want := len(faults) > 0, tooManyByFullScan(after); got != want {
				rt.Fatalf("%s: refused: %v, want %v", at, faults, want)
			}
			if again := CheckRules(after, before); len(faults) > 0 && again[0] != faults[0] {
				rt.Fatalf("%v, and then %v", faults, again)
			}
			if len(faults) > 0 {
				continue
			}
			after.Compiled = compileRules(after, nil)
			before = after
		}
	})
}

// Many rules of tenants and many patterns are checked in a time that does not grow with their product.
func BenchmarkCheckRules(b *testing.B) {
	before := &catalog.Snapshot{}
	add := func(l catalog.Limit) { before.Limits = append(before.Limits, &l) }
	add(limitNamed("api", "", catalog.Match{}))
	for i := range 10_000 {
		add(limitNamed(fmt.Sprint("api-", i), "api", catalog.Match{Tenant: fmt.Sprint("t", i)}))
		add(limitNamed(fmt.Sprint("route-", i), "", catalog.Match{Route: fmt.Sprintf("/v1/*/w%d", i)}))
	}
	before.Compiled = compileRules(before, nil)
	for name, match := range map[string]catalog.Match{"of a tenant": {Tenant: "t7"}, "of a route": {Route: "/v1/*/w7"}, "of all requests": {}} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				after := *before
				l := limitNamed("new", "", match)
				after.Limits = append(slices.Clone(before.Limits), &l)
				if faults := CheckRules(&after, before); len(faults) > 0 {
					b.Fatal(faults)
				}
			}
		})
	}
	b.Run("everything", func(b *testing.B) {
		for b.Loop() {
			if faults := CheckRules(before, &catalog.Snapshot{}); len(faults) > 0 {
				b.Fatal(faults)
			}
		}
	})
}
