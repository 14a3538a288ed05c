package gate

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/quotasvc/quotasvc/internal/catalog"
	"github.com/quotasvc/quotasvc/internal/ledger"
	"github.com/quotasvc/quotasvc/internal/ratelimit"
)

// limitNamed is a limit per tenant.
func limitNamed(rule, replaces string, match catalog.Match) catalog.Limit {
	return catalog.Limit{Rule: rule, Replaces: replaces, Match: match, Per: []string{"tenant"}, Kind: "token_bucket", Rate: "10/s"}
}

func setOf(t testing.TB, own, general []catalog.Limit) *ruleSet {
	t.Helper()
	compile := func(limits []catalog.Limit) (out []*limitRule) {
		for i := range limits {
			r, err := compileRule(&limits[i])
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, r)
		}
		return out
	}
	return newRuleSet(compile(own), compile(general))
}

func applied(s *ruleSet, req Request, plan string) string {
	return strings.Join(namesOf(s.apply(nil, &req, plan)), " ")
}

func TestRuleSet_OfRulesThatReplaceOneAnotherTheMostSpecificApplies(t *testing.T) {
	t.Parallel()
	general := []catalog.Limit{
		limitNamed("base", "", catalog.Match{}),
		limitNamed("other", "", catalog.Match{}),
		limitNamed("of-meter", "base", catalog.Match{Meter: "calls"}),
		limitNamed("of-prefix", "base", catalog.Match{Route: "/v1/**"}),
		limitNamed("of-route", "base", catalog.Match{Route: "/v1/search"}),
		limitNamed("of-plan", "base", catalog.Match{Plan: "pro"}),
		limitNamed("of-tenant", "base", catalog.Match{Tenant: "acme"}),
		// A row: the last one stands in for of-plan and, through it, for base.
		limitNamed("row-search", "of-plan", catalog.Match{Route: "/v1/search"}),
	}
	s := setOf(t, nil, general)
	call := func(tenant, route, meter string) Request {
		return Request{Tenant: tenant, Route: route, Items: []ledger.Item{{Meter: meter, Amount: 1}}}
	}
	for _, tc := range []struct {
		req  Request
		plan string
		want string
	}{
		{call("b", "", "x"), "", "base other"},
		{call("b", "", "calls"), "", "other of-meter"},
		{call("b", "/v1/x", "x"), "", "other of-prefix"},
		{call("b", "/v1/x", "calls"), "", "other of-prefix"},        // a route before a meter
		{call("b", "/v1/search", "calls"), "", "other of-route"},    // row-search has the same route; the smaller id decides
		{call("b", "/v1/x", "calls"), "pro", "other of-plan"},       // a plan before a route
		{call("acme", "/v1/x", "calls"), "pro", "other of-tenant"},  // a tenant before all
		{call("b", "/v1/search", "x"), "pro", "other of-route"},     // of-plan is replaced itself
		{call("acme", "/v1/search", "x"), "pro", "other of-tenant"}, // whatever stands in for the others
	} {
		if got := applied(s, tc.req, tc.plan); got != tc.want {
			t.Errorf("%+v on plan %q: %s, want %s", tc.req, tc.plan, got, tc.want)
		}
	}
}

func TestRuleSet_ARowOfReplacementsLeavesItsHead(t *testing.T) {
	t.Parallel()
	s := setOf(t, nil, []catalog.Limit{
		limitNamed("general", "", catalog.Match{}),
		limitNamed("pro", "general", catalog.Match{Plan: "pro"}),
		limitNamed("acme", "pro", catalog.Match{Tenant: "acme"}),
	})
	item := []ledger.Item{{Meter: "m", Amount: 1}}
	for want, req := range map[string]struct{ tenant, plan string }{
		"general": {"b", "free"}, "pro": {"b", "pro"}, "acme": {"acme", "pro"},
	} {
		if got := applied(s, Request{Tenant: req.tenant, Items: item}, req.plan); got != want {
			t.Errorf("%+v: %s, want %s", req, got, want)
		}
	}
	// acme has left the plan; its own rule stands in for the general one all the same.
	if got := applied(s, Request{Tenant: "acme", Items: item}, "free"); got != "acme" {
		t.Errorf("off the plan: %s", got)
	}
}

func TestRuleSet_APlansOwnRuleTakesThePlaceOfTheGeneralOneOfItsName(t *testing.T) {
	t.Parallel()
	general := []catalog.Limit{
		limitNamed("a", "", catalog.Match{}), limitNamed("b", "", catalog.Match{}), limitNamed("c", "a", catalog.Match{Meter: "m"}),
	}
	own := []catalog.Limit{limitNamed("b", "", catalog.Match{Route: "/only"}), limitNamed("mine", "a", catalog.Match{})}
	s := setOf(t, own, general)
	req := Request{Tenant: "t", Items: []ledger.Item{{Meter: "m", Amount: 1}}}
	if got := applied(s, req, "p"); got != "mine" { // own counts as the plan's, which comes before a meter; b is about another route
		t.Errorf("%s", got)
	}
	req.Route = "/only"
	if got := applied(s, req, "p"); got != "b mine" {
		t.Errorf("%s", got)
	}
}

func TestRuleSet_LeasesDecideRulesOfKindConcurrency(t *testing.T) {
	t.Parallel()
	slots := limitNamed("slots", "", catalog.Match{})
	slots.Kind = catalog.KindConcurrency
	s := setOf(t, nil, []catalog.Limit{slots, limitNamed("rate", "", catalog.Match{})})
	if got := applied(s, Request{Tenant: "t"}, ""); got != "rate" || s.byID["slots"] == nil {
		t.Errorf("%s, %v", got, s.byID["slots"])
	}
}

// drawLimits draws limits that name few things, so that they meet.
func drawLimits(t *rapid.T, prefix string, names []string) []catalog.Limit {
	var limits []catalog.Limit
	for i := range rapid.IntRange(0, 12).Draw(t, prefix+" limits") {
		at := fmt.Sprintf("%s%d ", prefix, i)
		oneOf := func(what string, of ...string) string { return rapid.SampledFrom(of).Draw(t, at+what) }
		l := limitNamed(fmt.Sprint(prefix, i), oneOf("replaces", append(names, "", "", "g0", "g1", "g2", "o0")...), catalog.Match{
			Route: oneOf("route", "", "", "/a", "/a/*", "/a/**", "/*/b", "**", "*"), Meter: oneOf("meter", "", "", "m", "n"),
			Plan: oneOf("plan", "", "", "p"), Tenant: oneOf("tenant", "", "", "t", "u"),
		})
		l.Per = rapid.SampledFrom([][]string{{"tenant"}, {"subject"}, {"route"}, {"ip"}, {"global"}, {"tenant", "ip", "route"}}).Draw(t, at+"per")
		limits = append(limits, l)
	}
	return limits
}

func TestRuleSet_FindsWhatLookingAtEveryRuleFinds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		own, general := drawLimits(rt, "o", nil), drawLimits(rt, "g", nil)
		for i := range own { // a plan's rule with a general one's name
			if rapid.IntRange(0, 3).Draw(rt, fmt.Sprint("renamed ", i)) == 0 {
				own[i].Rule = fmt.Sprint("g", i)
			}
		}
		s := setOf(t, own, general)
		oneOf := func(what string, of ...string) string { return rapid.SampledFrom(of).Draw(rt, what) }
		req := Request{
			Tenant: oneOf("tenant", "t", "u", "v"), Subject: oneOf("subject", "", "s"), Route: oneOf("route", "", "/a", "/a/b", "/a/b/c", "/x/b", "a"),
			Items: []ledger.Item{{Meter: oneOf("meter", "m", "n", "o"), Amount: 1}, {Meter: "second", Amount: 1}},
		}
		if rapid.Bool().Draw(rt, "has an address") {
			req.IP = netip.MustParseAddr("192.0.2.1")
		}
		plan := oneOf("plan", "", "p")

		got := s.apply(nil, &req, plan)
		if want := slowly(s, &req, plan); !slices.Equal(namesOf(got), namesOf(want)) {
			rt.Fatalf("%v, want %v", namesOf(got), namesOf(want))
		}
		rows := map[*member]bool{}
		for _, m := range got {
			if m.root != nil && rows[m.root] {
				rt.Fatalf("two rules of a row: %v", namesOf(got))
			}
			rows[m.root] = true
		}
	})
}

// slowly is what apply should find: it looks at every rule, and follows the definition word by word.
func slowly(s *ruleSet, req *Request, plan string) []*member {
	var all, out []*member
	for _, m := range s.byID {
		if m.appliesTo(req, plan) {
			all = append(all, m)
		}
	}
	replaces := func(a, b *member) bool {
		for at := s.byID[a.replaces]; at != nil; {
			if at == b {
				return true
			}
			if at.over == nil { // where a circle was cut
				return false
			}
			at = at.over
		}
		return false
	}
	var left []*member
	for _, m := range all {
		if !slices.ContainsFunc(all, func(o *member) bool { return o != m && o.over != nil && replaces(o, m) }) {
			left = append(left, m)
		}
	}
	for _, m := range left {
		if !slices.ContainsFunc(left, func(o *member) bool {
			return o != m && o.root != nil && o.root == m.root && compareSpecificity(o, m) < 0
		}) {
			out = append(out, m)
		}
	}
	slices.SortFunc(out, func(a, b *member) int { return cmp.Compare(a.order, b.order) })
	return out
}

func TestCheckRules_RefusesWhatOneRequestCouldNotBeDecidedOn(t *testing.T) {
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
		"of all of these, and one":    {append(many(full, match(catalog.Match{Tenant: "acme", Plan: "pro", Meter: "calls", Route: "/a"})), one...), false, "route /a, meter calls, tenant acme, plan pro"},
		"of different meters":         {many(500, func(i int) catalog.Limit { return limitNamed("r", "", catalog.Match{Meter: fmt.Sprint("m", i)}) }), true, ""},
		"of different tenants":        {many(500, func(i int) catalog.Limit { return limitNamed("r", "", catalog.Match{Tenant: fmt.Sprint("t", i)}) }), true, ""},
		"of different routes":         {many(500, func(i int) catalog.Limit { return limitNamed("r", "", catalog.Match{Route: fmt.Sprint("/", i, "/*")}) }), true, ""},
		"that replace one another":    {append(one, many(500, func(i int) catalog.Limit { return limitNamed("r", "one00", catalog.Match{}) })...), true, ""},
		"that are shadows":            {many(full+1, func(int) catalog.Limit { l := limitNamed("r", "", catalog.Match{}); l.Mode = "shadow"; return l }), false, "17 limits"},
		"overlapping patterns":        {append(many(full, match(catalog.Match{Route: "/a/**"})), many(1, func(int) catalog.Limit { return limitNamed("s", "", catalog.Match{Route: "/a/b/*"}) })...), false, "route /a/b/x"},
		"of dimensions not all named": {many(full+1, func(i int) catalog.Limit { l := limitNamed("r", "", catalog.Match{}); l.Per = []string{"ip"}; return l }), false, "17 limits"},
	} {
		faults := CheckRules(&catalog.Snapshot{Limits: tc.limits})
		if (len(faults) == 0) != tc.ok {
			t.Errorf("%s: %v", name, faults)
			continue
		}
		if !tc.ok && (!strings.Contains(faults[0].Message, tc.about) || !strings.Contains(faults[0].Message, "at most 16") || faults[0].Field != "match") {
			t.Errorf("%s: %v", name, faults[0])
		}
	}
	plans := map[string]*catalog.Plan{"p": {ID: "p", Limits: many(full, match(catalog.Match{}))}, "q": {ID: "q", Limits: one}}
	if faults := CheckRules(&catalog.Snapshot{Plans: plans}); len(faults) != 0 {
		t.Errorf("%v", faults)
	}
	faults := CheckRules(&catalog.Snapshot{Plans: plans, Limits: one})
	if len(faults) != 1 || faults[0].Plan != "" || !strings.Contains(faults[0].Message, "plan p") {
		t.Errorf("%v", faults)
	}
}

// BenchmarkApply is which rules apply to a request: two for everybody and one for its route, among more and more that are for
// other routes, meters and tenants; and, the worst there is, among route patterns that differ behind their first wildcard only.
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
	}{{"spread", spread, []int{3, 10, 100, 500, 5000}}, {"alike", alike, []int{10, 100, 500}}} {
		for _, n := range c.sizes {
			b.Run(fmt.Sprintf("%s/rules=%d", c.name, n), func(b *testing.B) {
				limits := []catalog.Limit{
					limitNamed("all", "", catalog.Match{}), limitNamed("calls", "", catalog.Match{Meter: "calls"}),
					limitNamed("mine", "", catalog.Match{Route: "/v1/*/items/**"}),
				}
				for i := 3; i < n; i++ {
					limits = append(limits, limitNamed(fmt.Sprint("rule", i), "", c.match(i)))
				}
				s := setOf(b, nil, limits)
				req := &Request{Tenant: "acme", Route: "/v1/search/items/4711/prices", Items: []ledger.Item{{Meter: "calls", Amount: 1}}}
				b.ReportAllocs()
				for b.Loop() {
					var space [listSpace]*member
					if got := s.apply(space[:0], req, "basic"); len(got) != 3 {
						b.Fatal(namesOf(got))
					}
				}
			})
		}
	}
}
