package gate

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/quotasvc/quotasvc/internal/catalog"
	"github.com/quotasvc/quotasvc/internal/ledger"
	"github.com/quotasvc/quotasvc/internal/ratelimit"
)

// tooManyByFullScan reports whether too many rules apply to a request for one meter. It tries all combinations of the
// plans, tenants and meters that rules name, and one other plan, tenant and meter. For each pattern it tries one
// route.
func tooManyByFullScan(s *catalog.Snapshot) bool {
	c := compileRules(s, nil)
	plans, tenants, meters, routes := []string{""}, []string{""}, []string{""}, []string{"/"}
	note := func(rules []*planRule) {
		for _, p := range rules {
			plans = append(plans, p.plan)
			tenants = append(tenants, p.tenant)
			meters = append(meters, p.meter)
			routes = append(routes, p.route.Sample())
		}
	}
	note(slices.Collect(c.general.general.each()))
	for plan, set := range c.plans {
		plans = append(plans, plan)
		note(set.own.own)
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
					req := &Request{
						Tenant: tenant, Subject: "s", Route: route, Forwarded: " ", IP: netip.MustParseAddr("192.0.2.1"),
						Items: []ledger.Item{{Meter: meter, Amount: 1}},
					}
					if len(set.apply(nil, req, plan)) > ratelimit.MaxCharges {
						return true
					}
				}
			}
		}
	}
	return false
}

func byRule(a, b *catalog.Limit) int { return strings.Compare(a.Rule, b.Rule) }

// differsFrom compares c with whole, whose rules were all compiled together. It returns a description of the
// difference, or "" if both have the same rules.
func (c *compiledRules) differsFrom(whole *compiledRules) string {
	chain := func(s *ruleSet, p *planRule) (ids []string) {
		for at := p.link; at != nil; at = s.up(at) {
			ids = append(ids, at.id)
		}
		return append(ids, s.rootOf(p).id, p.compiled.Metric)
	}
	same := func(a, b *ruleSet) string {
		replacing := func(s *ruleSet) map[string]int { return maps.Collect(s.general.replacing.All()) }
		if a.general.byID.Len() != b.general.byID.Len() || !maps.Equal(replacing(a), replacing(b)) {
			return "other general rules"
		}
		rules := slices.Collect(b.general.each())
		if b.own != nil {
			if a.own == nil {
				return "no rules of the plan"
			}
			rules = append(rules, b.own.own...)
		}
		for _, p := range rules {
			q := a.general.byID.Get(p.compiled.ID)
			if p.own {
				q = a.own.byID.Get(p.compiled.ID)
			}
			if q == nil || q.source != p.source || q.order != p.order || !slices.Equal(chain(a, q), chain(b, p)) {
				return fmt.Sprintf("the rule %s is %+v, want %+v", p.compiled.ID, q, p)
			}
			for _, tenant := range []string{"", "t", "u"} {
				items := []ledger.Item{{Meter: p.meter, Amount: 1}}
				req := &Request{Tenant: tenant, Subject: "s", Route: p.route.Sample(), Items: items}
				got := namesOf(a.apply(nil, req, p.plan))
				if want := namesOf(b.apply(nil, req, p.plan)); !slices.Equal(got, want) {
					return fmt.Sprintf("%+v has %v, want %v", req, got, want)
				}
			}
		}
		return ""
	}
	if diff := same(c.general, whole.general); diff != "" || len(c.plans) != len(whole.plans) {
		return fmt.Sprint(diff, " ", len(c.plans), " plans, want ", len(whole.plans))
	}
	for name, set := range whole.plans {
		if diff := same(c.plans[name], set); diff != "" {
			return name + ": " + diff
		}
	}
	counts := func(c *compiledRules) []any {
		n := &c.counts
		most := c.mostPerRequest()
		most.counts = nil
		return []any{
			maps.Collect(c.labels.All()), n.anywhere, n.chains.All(), n.tenants.All(), n.plans.All(), n.meters.All(),
			n.matched.All(), maps.Collect(n.samples.All()), n.maxGeneral(), n.maxPerTenant(), n.matched.Most(),
			n.plans.Most(), n.meters.Most(), most,
		}
	}
	if got, want := fmt.Sprint(counts(c)), fmt.Sprint(counts(whole)); got != want {
		return got + "\nwant " + want
	}
	return ""
}

// After every accepted change, no tried request has too many rules. A refused change is refused the same way each
// time. Rules that are compiled from the previous rules equal rules that are compiled together.
func TestCheckRules_AfterEveryChange_NoRequestHasTooMany(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		draw := func(at, prefix string) (limits []*catalog.Limit) {
			for i := range rapid.IntRange(0, 9).Draw(rt, at+" groups") {
				group := fmt.Sprint(at, " group ", i, " ")
				oneOf := func(what string, of ...string) string { return rapid.SampledFrom(of).Draw(rt, group+what) }
				match := catalog.Match{
					Route: oneOf("route", "", "", "/a", "/a/*", "/a/**", "/*/b"), Meter: oneOf("meter", "", "", "m", "n"),
					Plan: oneOf("plan", "", "", "p", "q"), Tenant: oneOf("tenant", "", "", "t", "u"),
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
			default: // changes one limit
				replaces := rapid.SampledFrom([]string{"", "g1.0"}).Draw(rt, at+"replaces")
				tenant := rapid.SampledFrom([]string{"", "t"}).Draw(rt, at+"tenant")
				route := rapid.SampledFrom([]string{"", "/a"}).Draw(rt, at+"route")
				changed := limitNamed("g0.0", replaces, catalog.Match{Tenant: tenant, Route: route})
				isChanged := func(l *catalog.Limit) bool { return l.Rule == changed.Rule }
				after.Limits = append(slices.DeleteFunc(after.Limits, isChanged), &changed)
			}
			slices.SortFunc(after.Limits, byRule)
			faults := CheckRules(after, before)
			require.False(rt, tooManyByFullScan(after) && len(faults) == 0,
				"%s: not refused, although too many rules apply to a request", at)
			again := CheckRules(after, before)
			require.False(rt, len(faults) > 0 && again[0] != faults[0], "%v, and then %v", faults, again)
			c := compileRules(after, before)
			require.Empty(rt, c.differsFrom(compileRules(after, nil)), "%s: compiled from the rules before", at)
			if len(faults) > 0 {
				continue
			}
			after.Compiled = c
			before = after
		}
	})
}

// A rule for all tenants replaces the only rule of tenant t. The only rule of tenant u is in no chain. So one rule
// more applies to requests of u than to requests of t.
func TestCheckRules_ChainOfOneTenantReplacedForAll_OthersCount(t *testing.T) {
	t.Parallel()
	s := &catalog.Snapshot{}
	add := func(id, replaces, tenant string) {
		l := limitNamed(id, replaces, catalog.Match{Tenant: tenant})
		s.Limits = append(s.Limits, &l)
	}
	add("a", "", "t")
	add("b", "", "u")
	add("c", "a", "")
	for i := range ratelimit.MaxCharges - 1 {
		add(fmt.Sprintf("d%02d", i), "", "")
	}
	assert.NotEmpty(t, CheckRules(s, &catalog.Snapshot{}), "a request of u has %d rules", ratelimit.MaxCharges+1)
	assert.True(t, tooManyByFullScan(s))
}

// Rules of a plan or tenant that replace a general rule add nothing to the sum. If other rules are refused, the
// message says what to do.
func TestCheckRules_ReplacingRules_AddNothing(t *testing.T) {
	t.Parallel()
	full := ratelimit.MaxCharges
	catalogue := func(replace bool, change func(of *catalog.Match)) *catalog.Snapshot {
		s := &catalog.Snapshot{Plans: map[string]*catalog.Plan{"p": {ID: "p"}}}
		for i := range full {
			general := limitNamed(fmt.Sprintf("general%02d", i), "", catalog.Match{Route: "/a/*"})
			target := ""
			if replace {
				target = general.Rule
			}
			ofTenant := limitNamed(fmt.Sprintf("tenant%02d", i), target, catalog.Match{Tenant: "t", Route: "/a/*"})
			change(&ofTenant.Match)
			s.Limits = append(s.Limits, &general, &ofTenant)
			ofPlan := limitNamed(fmt.Sprintf("plan%02d", i), target, catalog.Match{Meter: "m", Route: "/a/*"})
			s.Plans["p"].Limits = append(s.Plans["p"].Limits, ofPlan)
		}
		slices.SortFunc(s.Limits, byRule)
		return s
	}
	same := func(*catalog.Match) {}
	assert.Empty(t, CheckRules(catalogue(true, same), &catalog.Snapshot{}), "rules that take the place of general ones")
	for name, s := range map[string]*catalog.Snapshot{
		"that replace none":          catalogue(false, same),
		"with a route of their own":  catalogue(true, func(of *catalog.Match) { of.Route = "/b/*" }),
		"without the general route":  catalogue(true, func(of *catalog.Match) { of.Route = "" }),
		"without the general route2": catalogue(true, func(of *catalog.Match) { of.Route = "/**" }),
	} {
		faults := CheckRules(s, &catalog.Snapshot{})
		if !assert.True(t, len(faults) == 1, "%s: %v", name, faults) {
			continue
		}
		for _, text := range []string{"16 of all tenants and plans", "16 of them match route /a/x", "16 of tenant t", "replace"} {
			assert.Contains(t, faults[0].Message, text, "%s: %q does not say %q", name, faults[0].Message, text)
		}
	}
}

// A catalogue was stored before the bound existed, and its sum exceeds the bound. It can be changed if the sum does
// not rise.
func TestCheckRules_BeyondTheBoundBefore_MayNotRise(t *testing.T) {
	t.Parallel()
	before := &catalog.Snapshot{}
	for i := range ratelimit.MaxCharges {
		for _, tenant := range []string{"", "t"} { // on different routes, so at most 16 apply to a request
			match := catalog.Match{Tenant: tenant, Route: "/of" + tenant}
			l := limitNamed(fmt.Sprintf("%s%02d", tenant, i), "", match)
			before.Limits = append(before.Limits, &l)
		}
	}
	slices.SortFunc(before.Limits, byRule)
	require.NotEmpty(t, CheckRules(before, &catalog.Snapshot{}), "not refused when it is new")
	before.Compiled = compileRules(before, nil)
	changed := func(put catalog.Limit) *catalog.Snapshot {
		isPut := func(l *catalog.Limit) bool { return l.Rule == put.Rule }
		limits := append(slices.DeleteFunc(slices.Clone(before.Limits), isPut), &put)
		slices.SortFunc(limits, byRule)
		return &catalog.Snapshot{Limits: limits}
	}
	rate := *before.Limits[3]
	rate.Rate = "11/s"
	assert.Empty(t, CheckRules(changed(rate), before), "another rate")
	other := limitNamed("u1", "", catalog.Match{Tenant: "u"})
	assert.Empty(t, CheckRules(changed(other), before), "a rule of another tenant")
	faults := CheckRules(changed(limitNamed("t99", "", catalog.Match{Tenant: "t"})), before)
	assert.True(t, len(faults) == 1 && faults[0].Rule == "t99" && strings.Contains(faults[0].Message, "33 limits"),
		"one more of the tenant: %v", faults)
}

// BenchmarkCheckRules checks many rules of tenants and many patterns. The time must not grow with the product of
// their numbers.
func BenchmarkCheckRules(b *testing.B) {
	before := &catalog.Snapshot{}
	add := func(l catalog.Limit) { before.Limits = append(before.Limits, &l) }
	add(limitNamed("api", "", catalog.Match{}))
	for i := range 10_000 {
		add(limitNamed(fmt.Sprint("api-", i), "api", catalog.Match{Tenant: fmt.Sprint("t", i)}))
		add(limitNamed(fmt.Sprint("route-", i), "", catalog.Match{Route: fmt.Sprintf("/v1/*/w%d", i)}))
	}
	slices.SortFunc(before.Limits, byRule)
	before.Compiled = compileRules(before, nil)
	for name, match := range map[string]catalog.Match{"of a tenant": {Tenant: "t7"}, "of a route": {Route: "/v1/*/w7"}, "of all requests": {}} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				after := *before
				l := limitNamed("new", "", match)
				at, _ := slices.BinarySearchFunc(before.Limits, &l, byRule)
				after.Limits = slices.Insert(slices.Clone(before.Limits), at, &l)
				if faults := CheckRules(&after, before); len(faults) > 0 {
					b.Fatal(faults)
				}
			}
		})
	}
	b.Run("of other numbers", func(b *testing.B) {
		for b.Loop() {
			after := *before
			l := *before.Limits[7]
			l.Rate = "11/s"
			after.Limits = slices.Clone(before.Limits)
			after.Limits[7] = &l
			if faults := CheckRules(&after, before); len(faults) > 0 {
				b.Fatal(faults)
			}
		}
	})
	b.Run("everything", func(b *testing.B) {
		for b.Loop() {
			if faults := CheckRules(before, &catalog.Snapshot{}); len(faults) > 0 {
				b.Fatal(faults)
			}
		}
	})
}
