package gate

import (
	"fmt"
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

// limitNamed returns a limit per tenant with this id.
func limitNamed(rule, replaces string, match catalog.Match) catalog.Limit {
	return catalog.Limit{Rule: rule, Replaces: replaces, Match: match, Per: []string{"tenant"}, Kind: "token_bucket", Rate: "10/s"}
}

func mustRuleSet(t testing.TB, own, general []catalog.Limit) *ruleSet {
	t.Helper()
	compile := func(limits []catalog.Limit) (out []*limitRule) {
		for i := range limits {
			r, err := compileRule(&limits[i])
			require.NoError(t, err)
			out = append(out, r)
		}
		return out
	}
	return newRuleSet(compile(own), newGeneralRules(compile(general)))
}

func pointersTo[T any](items []T) []*T {
	out := make([]*T, len(items))
	for i := range items {
		out[i] = &items[i]
	}
	return out
}

func appliedNames(s *ruleSet, req Request, plan string) string {
	return strings.Join(namesOf(s.apply(nil, &req, plan)), " ")
}

func TestRuleSet_Replaces_MostSpecificApplies(t *testing.T) {
	t.Parallel()
	general := []catalog.Limit{
		limitNamed("base", "", catalog.Match{}),
		limitNamed("other", "", catalog.Match{}),
		limitNamed("of-meter", "base", catalog.Match{Meter: "calls"}),
		limitNamed("of-prefix", "base", catalog.Match{Route: "/v1/**"}),
		limitNamed("of-route", "base", catalog.Match{Route: "/v1/search"}),
		limitNamed("of-plan", "base", catalog.Match{Plan: "pro"}),
		limitNamed("of-tenant", "base", catalog.Match{Tenant: "acme"}),
		// A chain: row-search replaces of-plan, which replaces base.
		limitNamed("row-search", "of-plan", catalog.Match{Route: "/v1/search"}),
	}
	s := mustRuleSet(t, nil, general)
	call := func(tenant, route, meter string) Request {
		return Request{Tenant: tenant, Route: route, Items: []ledger.Item{{Meter: meter, Amount: 1}}}
	}
	for _, tc := range []struct {
		req  Request
		plan string
		want string
	}{
		{call("b", "", "x"), "", "base other"},
		{call("b", "", "calls"), "", "of-meter other"},
		{call("b", "/v1/x", "x"), "", "of-prefix other"},
		{call("b", "/v1/x", "calls"), "", "of-prefix other"},        // a route is more specific than a meter
		{call("b", "/v1/search", "calls"), "", "of-route other"},    // row-search has the same route; the smaller id decides
		{call("b", "/v1/x", "calls"), "pro", "of-plan other"},       // a plan is more specific than a route
		{call("acme", "/v1/x", "calls"), "pro", "of-tenant other"},  // a tenant is the most specific
		{call("b", "/v1/search", "x"), "pro", "of-route other"},     // row-search replaces of-plan
		{call("acme", "/v1/search", "x"), "pro", "of-tenant other"}, // a tenant is more specific than the others
	} {
		assert.Equal(t, tc.want, appliedNames(s, tc.req, tc.plan), "%+v on plan %q", tc.req, tc.plan)
	}
}

func TestRuleSet_Chain_FirstApplicableApplies(t *testing.T) {
	t.Parallel()
	s := mustRuleSet(t, nil, []catalog.Limit{
		limitNamed("general", "", catalog.Match{}),
		limitNamed("pro", "general", catalog.Match{Plan: "pro"}),
		limitNamed("acme", "pro", catalog.Match{Tenant: "acme"}),
	})
	item := []ledger.Item{{Meter: "m", Amount: 1}}
	for want, req := range map[string]struct{ tenant, plan string }{
		"general": {"b", "free"}, "pro": {"b", "pro"}, "acme": {"acme", "pro"},
	} {
		assert.Equal(t, want, appliedNames(s, Request{Tenant: req.tenant, Items: item}, req.plan), req)
	}
	// For a tenant on another plan, the rule of acme still replaces the general rule, through the rule of the plan.
	assert.Equal(t, "acme", appliedNames(s, Request{Tenant: "acme", Items: item}, "free"), "off the plan")
}

func TestRuleSet_PlansOwnRule_ReplacesGeneralOfSameID(t *testing.T) {
	t.Parallel()
	general := []catalog.Limit{
		limitNamed("a", "", catalog.Match{}), limitNamed("b", "", catalog.Match{}), limitNamed("c", "a", catalog.Match{Meter: "m"}),
	}
	own := []catalog.Limit{limitNamed("b", "", catalog.Match{Route: "/only"}), limitNamed("mine", "a", catalog.Match{})}
	s := mustRuleSet(t, own, general)
	req := Request{Tenant: "t", Items: []ledger.Item{{Meter: "m", Amount: 1}}}
	assert.Equal(t, "mine", appliedNames(s, req, "p")) // a plan is more specific than a meter; b has another route
	req.Route = "/only"
	assert.Equal(t, "b mine", appliedNames(s, req, "p"))
}

func TestRuleSet_Concurrency_AppliesToNoRequest(t *testing.T) {
	t.Parallel()
	slots := limitNamed("slots", "", catalog.Match{})
	slots.Kind = catalog.KindConcurrency
	s := mustRuleSet(t, nil, []catalog.Limit{slots, limitNamed("rate", "", catalog.Match{})})
	got := appliedNames(s, Request{Tenant: "t"}, "")
	assert.True(t, got == "rate" && s.rule("slots") != nil, "%s, %v", got, s.rule("slots"))
}

// countChains returns the number of chains to which the rules belong. A rule that replaces no rule and is replaced by
// none counts as a chain.
func countChains(set *ruleSet, rules []*planRule) int {
	roots := map[*link]bool{}
	for _, p := range rules {
		roots[set.rootOf(p)] = true
	}
	return len(roots)
}

// drawLimits draws limits with few different values, so that several limits apply to one request.
func drawLimits(t *rapid.T, prefix string, names []string) []catalog.Limit {
	var limits []catalog.Limit
	for i := range rapid.IntRange(0, 12).Draw(t, prefix+" limits") {
		at := fmt.Sprintf("%s%d ", prefix, i)
		oneOf := func(what string, of ...string) string { return rapid.SampledFrom(of).Draw(t, at+what) }
		l := limitNamed(fmt.Sprint(prefix, i), oneOf("replaces", append(names, "", "", "g0", "g1", "g2", "o0")...), catalog.Match{
			Route: oneOf("route", "", "", "/a", "/A/", "/a/*", "/a/**", "/a;x/**", "/*/b", "/*/B/", "**", "*"), Method: oneOf("method", "", "", "", "GET"), Meter: oneOf("meter", "", "", "m", "n"),
			Plan: oneOf("plan", "", "", "p"), Tenant: oneOf("tenant", "", "", "t", "u"),
		})
		l.Per = rapid.SampledFrom([][]string{{"tenant"}, {"subject"}, {"route"}, {"ip"}, {"global"}, {"tenant", "ip", "route"}}).Draw(t, at+"per")
		l.Normalize = rapid.SampledFrom([][]string{nil, nil, {}, {"case"}, {"trailing_slash", "matrix"}, {"case", "trailing_slash", "matrix", "encoded_slash"}}).Draw(t, at+"normalize")
		limits = append(limits, l)
	}
	return limits
}

func TestRuleSet_Apply_EqualsFullScan(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		own, general := drawLimits(rt, "o", nil), drawLimits(rt, "g", nil)
		for i := range own { // some rules of the plan get the id of a general rule
			if rapid.IntRange(0, 3).Draw(rt, fmt.Sprint("renamed ", i)) == 0 {
				own[i].Rule = fmt.Sprint("g", i)
			}
		}
		s := mustRuleSet(t, own, general)
		oneOf := func(what string, of ...string) string { return rapid.SampledFrom(of).Draw(rt, what) }
		req := Request{
			Tenant: oneOf("tenant", "t", "u", "v"), Subject: oneOf("subject", "", "s"), Method: oneOf("method", "", "GET", "POST"), Forwarded: oneOf("forwarded", "", "GET /"),
			Route: oneOf("route", "", "/a", "/A", "/a/", "/a;y", "/a%2fb", "/a/b", "/a/B/", "/a/b/c", "/x/b", "/..;/a/b", "a"),
			Items: []ledger.Item{{Meter: oneOf("meter", "m", "n", "o"), Amount: 1}, {Meter: "second", Amount: 1}},
		}
		if rapid.Bool().Draw(rt, "has an address") {
			req.IP = netip.MustParseAddr("192.0.2.1")
		}
		plan := oneOf("plan", "", "p")

		got := s.apply(nil, &req, plan)
		require.Equal(rt, namesOf(applyByFullScan(s, &req, plan)), namesOf(got))
		require.Equal(rt, len(got), countChains(s, got), "two rules of a chain: %v", namesOf(got))
	})
}

// applyByFullScan returns the rules that the method apply must return. It examines every rule and follows the
// definition in the package comment.
func applyByFullScan(s *ruleSet, req *Request, plan string) []*planRule {
	var all, out []*planRule
	rules := slices.Collect(s.general.each())
	if s.own != nil {
		rules = slices.Concat(s.own.own, rules)
	}
	for _, m := range rules {
		if s.rule(m.compiled.ID) == m && m.appliesTo(req, plan) {
			all = append(all, m)
		}
	}
	// A rule replaces the rule that it names, unless its link was removed to cut a circle.
	replaces := func(a, b *planRule) bool {
		for at := a; ; {
			next := s.rule(at.replaces)
			if s.up(at.link) == nil || next == nil {
				return false
			}
			if at = next; at == b {
				return true
			}
		}
	}
	related := func(a, b *planRule) bool { return s.walk(a.link) == s.walk(b.link) }
	var left []*planRule
	for _, m := range all {
		if !slices.ContainsFunc(all, func(o *planRule) bool { return o != m && replaces(o, m) }) {
			left = append(left, m)
		}
	}
	for _, m := range left {
		if !slices.ContainsFunc(left, func(o *planRule) bool { return o != m && related(o, m) && compareSpecificity(o, m) < 0 }) {
			out = append(out, m)
		}
	}
	slices.SortFunc(out, compareOrder)
	return out
}

func TestCheckRules_RefusesMoreThan16PerRequest(t *testing.T) {
	t.Parallel()
	many := func(n int, of func(i int) catalog.Limit) (limits []catalog.Limit) {
		for i := range n {
			l := of(i)
			l.Rule = fmt.Sprintf("%s%02d", l.Rule, i)
			limits = append(limits, l)
		}
		return limits
	}
	match := func(m catalog.Match) func(int) catalog.Limit {
		return func(int) catalog.Limit { return limitNamed("r", "", m) }
	}
	one := many(1, func(int) catalog.Limit { return limitNamed("one", "", catalog.Match{}) })
	full := ratelimit.MaxCharges
	for name, tc := range map[string]struct {
		limits []catalog.Limit
		ok     bool
		about  string
	}{
		"as many as can be":           {many(full, match(catalog.Match{})), true, ""},
		"one more":                    {many(full+1, match(catalog.Match{})), false, "17 limits"},
		"of one tenant, and one":      {append(many(full, match(catalog.Match{Tenant: "acme"})), one...), false, "tenant acme"},
		"of one plan, and one":        {append(many(full, match(catalog.Match{Plan: "pro"})), one...), false, "plan pro"},
		"of one meter, and one":       {append(many(full, match(catalog.Match{Meter: "calls"})), one...), false, "meter calls"},
		"of a route, and one":         {append(many(full, match(catalog.Match{Route: "/v1/*/x"})), one...), false, "route /v1/x/x"},
		"of all of these, and one":    {append(many(full, match(catalog.Match{Tenant: "acme", Plan: "pro", Meter: "calls", Route: "/a"})), one...), false, "16 of tenant acme"},
		"of different meters":         {many(500, func(i int) catalog.Limit { return limitNamed("r", "", catalog.Match{Meter: fmt.Sprint("m", i)}) }), true, ""},
		"of different tenants":        {many(500, func(i int) catalog.Limit { return limitNamed("r", "", catalog.Match{Tenant: fmt.Sprint("t", i)}) }), true, ""},
		"of different routes":         {many(500, func(i int) catalog.Limit { return limitNamed("r", "", catalog.Match{Route: fmt.Sprint("/", i, "/*")}) }), true, ""},
		"that replace one another":    {append(one, many(500, func(i int) catalog.Limit { return limitNamed("r", "one00", catalog.Match{}) })...), true, ""},
		"that are shadows":            {many(full+1, func(int) catalog.Limit { l := limitNamed("r", "", catalog.Match{}); l.Mode = "shadow"; return l }), false, "17 limits"},
		"overlapping patterns":        {append(many(full, match(catalog.Match{Route: "/a/**"})), many(1, func(int) catalog.Limit { return limitNamed("s", "", catalog.Match{Route: "/a/b/*"}) })...), false, "route /a/b/x"},
		"of dimensions not all named": {many(full+1, func(i int) catalog.Limit { l := limitNamed("r", "", catalog.Match{}); l.Per = []string{"ip"}; return l }), false, "17 limits"},
	} {
		faults := CheckRules(&catalog.Snapshot{Limits: pointersTo(tc.limits)}, &catalog.Snapshot{})
		if !assert.True(t, (len(faults) == 0) == tc.ok, "%s: %v", name, faults) {
			continue
		}
		for _, fault := range faults {
			assert.Equal(t, "match", fault.Field, name)
			assert.Contains(t, fault.Message, tc.about, name)
			assert.Contains(t, fault.Message, "at most 16", name)
		}
	}
	plans := map[string]*catalog.Plan{"p": {ID: "p", Limits: many(full, match(catalog.Match{}))}, "q": {ID: "q", Limits: one}}
	assert.Empty(t, CheckRules(&catalog.Snapshot{Plans: plans}, &catalog.Snapshot{}))
	faults := CheckRules(&catalog.Snapshot{Plans: plans, Limits: pointersTo(one)}, &catalog.Snapshot{})
	assert.True(t, len(faults) == 1 && faults[0].Plan == "" && strings.Contains(faults[0].Message, "plan p"), faults)
}

// BenchmarkApply measures the lookup of the three rules that apply to a request, among a growing number of rules for
// other routes, meters and tenants. The slowest case is route patterns that differ only after their first wildcard.
func BenchmarkApply(b *testing.B) {
	spread := func(i int) catalog.Match {
		return [...]catalog.Match{
			{Route: fmt.Sprintf("/v1/r%d/*", i)},
			{Route: fmt.Sprintf("/v1/r%d/**", i)},
			{Meter: fmt.Sprint("m", i)},
			{Tenant: fmt.Sprint("t", i)},
			{Route: fmt.Sprint("/v1/rule", i)},
		}[i%5]
	}
	alike := func(i int) catalog.Match { return catalog.Match{Route: fmt.Sprintf("/v1/*/items/*/r%d", i)} }
	for _, c := range []struct {
		name  string
		match func(int) catalog.Match
		sizes []int
	}{{"spread", spread, []int{3, 10, 100, 500, 5000}}, {"alike", alike, []int{10, 100, 500, 10_000}}} {
		for _, n := range c.sizes {
			b.Run(fmt.Sprintf("%s/rules=%d", c.name, n), func(b *testing.B) {
				limits := []catalog.Limit{
					limitNamed("all", "", catalog.Match{}), limitNamed("calls", "", catalog.Match{Meter: "calls"}),
					limitNamed("mine", "", catalog.Match{Route: "/v1/*/items/**"}),
				}
				for i := 3; i < n; i++ {
					limits = append(limits, limitNamed(fmt.Sprint("rule", i), "", c.match(i)))
				}
				s := mustRuleSet(b, nil, limits)
				req := &Request{Tenant: "acme", Route: "/v1/search/items/4711/prices", Items: []ledger.Item{{Meter: "calls", Amount: 1}}}
				b.ReportAllocs()
				for b.Loop() {
					if got := s.apply(make([]*planRule, 0, fewRules), req, "basic"); len(got) != 3 {
						b.Fatal(namesOf(got))
					}
				}
			})
		}
	}
}
