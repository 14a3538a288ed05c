package gate

import (
	"errors"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/catalog"
	"github.com/quotasvc/quotasvc/internal/kit/body"
	"github.com/quotasvc/quotasvc/internal/ledger"
)

func mustCompile(t *testing.T, l catalog.Limit) *limitRule {
	t.Helper()
	if l.Rule == "" {
		l.Rule = "r"
	}
	l.Kind, l.Rate = "token_bucket", "10/s"
	r, err := compileRule(&l)
	require.NoError(t, err)
	return r
}

func TestRule_AppliesTo_MatchAndDimensions(t *testing.T) {
	t.Parallel()
	tenant, subject, route := []string{"tenant"}, []string{"tenant", "subject"}, []string{"tenant", "route"}
	search := Request{Route: "search", Subject: "ann", Items: []ledger.Item{{Meter: "a"}, {Meter: "b"}}}
	bare := Request{Items: []ledger.Item{{Meter: "a"}}}
	called := Request{Tenant: "acme", Route: "/v1/x", IP: netip.MustParseAddr("192.0.2.1"), Items: bare.Items}
	for name, tc := range map[string]struct {
		limit catalog.Limit
		req   Request
		plan  string
		want  bool
	}{
		"everything":                   {catalog.Limit{Per: tenant}, bare, "", true},
		"its route":                    {catalog.Limit{Per: tenant, Match: catalog.Match{Route: "search"}}, search, "", true},
		"another route":                {catalog.Limit{Per: tenant, Match: catalog.Match{Route: "export"}}, search, "", false},
		"a route that is a prefix":     {catalog.Limit{Per: tenant, Match: catalog.Match{Route: "sea"}}, search, "", false},
		"no route":                     {catalog.Limit{Per: tenant, Match: catalog.Match{Route: "search"}}, bare, "", false},
		"its meter, second item":       {catalog.Limit{Per: tenant, Match: catalog.Match{Meter: "b"}}, search, "", true},
		"another meter":                {catalog.Limit{Per: tenant, Match: catalog.Match{Meter: "b"}}, bare, "", false},
		"its plan":                     {catalog.Limit{Per: tenant, Match: catalog.Match{Plan: "pro"}}, bare, "pro", true},
		"another plan":                 {catalog.Limit{Per: tenant, Match: catalog.Match{Plan: "pro"}}, bare, "free", false},
		"all of it":                    {catalog.Limit{Per: tenant, Match: catalog.Match{Route: "search", Meter: "a", Plan: "pro"}}, search, "pro", true},
		"all but one":                  {catalog.Limit{Per: tenant, Match: catalog.Match{Route: "search", Meter: "a", Plan: "pro"}}, search, "free", false},
		"per subject, with one":        {catalog.Limit{Per: subject}, search, "", true},
		"per subject, without":         {catalog.Limit{Per: subject}, bare, "", false},
		"per subject alone, with one":  {catalog.Limit{Per: []string{"subject"}}, search, "", true},
		"per route, with one":          {catalog.Limit{Per: route}, search, "", true},
		"per route, without":           {catalog.Limit{Per: route}, bare, "", false},
		"per address, with one":        {catalog.Limit{Per: []string{"ip"}}, called, "", true},
		"per address, without":         {catalog.Limit{Per: []string{"ip"}}, search, "", false},
		"all dimensions, without one":  {catalog.Limit{Per: []string{"subject", "route", "ip"}}, search, "", false},
		"global":                       {catalog.Limit{Per: []string{"global"}}, bare, "", true},
		"its tenant":                   {catalog.Limit{Per: tenant, Match: catalog.Match{Tenant: "acme"}}, called, "", true},
		"another tenant":               {catalog.Limit{Per: tenant, Match: catalog.Match{Tenant: "acme"}}, search, "", false},
		"a pattern of its route":       {catalog.Limit{Per: tenant, Match: catalog.Match{Route: "/v1/*"}}, called, "", true},
		"a pattern of another":         {catalog.Limit{Per: tenant, Match: catalog.Match{Route: "/v2/**"}}, called, "", false},
		"any route, without one":       {catalog.Limit{Per: tenant, Match: catalog.Match{Route: "**"}}, bare, "", false},
		"per route and subject, a lot": {catalog.Limit{Per: []string{"route", "tenant", "subject"}}, search, "", true},
	} {
		assert.Equal(t, tc.want, mustCompile(t, tc.limit).appliesTo(&tc.req, tc.plan), name)
	}
}

func TestRule_Dimension_DiffersPerCombination(t *testing.T) {
	t.Parallel()
	both := mustCompile(t, catalog.Limit{Per: []string{"tenant", "subject", "route"}})
	seen := map[string]Request{}
	for _, req := range []Request{
		{Subject: "a", Route: "b"}, {Subject: "b", Route: "a"}, {Subject: "ab", Route: "c"}, {Subject: "a", Route: "bc"}, {Subject: "a", Route: "c"},
	} {
		d := both.dimension(&req)
		other, twice := seen[d]
		assert.False(t, twice, "%+v and %+v share a bucket", req, other)
		seen[d] = req
	}
	req := Request{Subject: "x", Route: "x"}
	one, other := mustCompile(t, catalog.Limit{Per: []string{"subject"}}), mustCompile(t, catalog.Limit{Per: []string{"tenant", "route"}})
	assert.True(t, one.dimension(&req) != other.dimension(&req),
		"a subject and a route of the same name share a bucket")
	assert.Empty(t, mustCompile(t, catalog.Limit{Per: []string{"tenant"}}).dimension(&req),
		"a rule per tenant divides its bucket")
}

func TestCheckLimit_NamesTheField(t *testing.T) {
	t.Parallel()
	good := catalog.Limit{Rule: "r", Per: []string{"tenant"}, Kind: "token_bucket", Rate: "10/s"}
	assert.NoError(t, CheckLimit(&good), "a good limit")
	for field, spoil := range map[string]func(*catalog.Limit){
		"per[1]": func(l *catalog.Limit) { l.Per = []string{"tenant", "planet"} },
		"rate":   func(l *catalog.Limit) { l.Rate = "10/fortnight" },
		"burst":  func(l *catalog.Limit) { l.Burst = ledger.MaxAmount },
		"cost":   func(l *catalog.Limit) { l.Cost = 11 },
		"costs[1].cost": func(l *catalog.Limit) {
			l.Costs = []catalog.RouteCost{{Route: "/a", Cost: 10}, {Route: "/b", Cost: 11}}
		},
		"match.route": func(l *catalog.Limit) { l.Match.Route = "/**/x" },
		"timezone":    func(l *catalog.Limit) { l.Timezone = "Mars/Olympus" },
		"kind":        func(l *catalog.Limit) { l.Kind = "guess" },
	} {
		bad := good
		spoil(&bad)
		fault, ok := errors.AsType[*body.Fault](CheckLimit(&bad))
		assert.True(t, ok && fault.Field == field, "%s: %v", field, fault)
	}
	// At one token per ms the largest capacity is 2^53-1. With cost_by amount the largest capacity is one less, so
	// that a cost can exceed it.
	whole := catalog.Limit{Rule: "r", Per: []string{"tenant"}, Kind: "token_bucket", Rate: "1000000/s", Burst: ledger.MaxAmount}
	assert.NoError(t, CheckLimit(&whole))
	whole.CostBy, whole.Match.Meter = "amount", "m"
	fault, ok := errors.AsType[*body.Fault](CheckLimit(&whole))
	assert.True(t, ok && fault.Field == "burst", fault)
}

func TestRule_Dimension_IPv6PrefixAndMappedIPv4(t *testing.T) {
	t.Parallel()
	r := mustCompile(t, catalog.Limit{Per: []string{"ip"}})
	assert.True(t, r.compiled.Shared, "a rule per address is a tenant's")
	of := func(ip string) string { return r.dimension(&Request{IP: netip.MustParseAddr(ip)}) }
	for _, same := range [][2]string{
		{"2001:db8::1", "2001:db8::ffff:ffff:ffff:ffff"},
		{"192.0.2.1", "::ffff:192.0.2.1"},
		{"fe80::1", "fe80::2"},
		{"::c000:201", "192.0.2.1"},
		{"64:ff9b::c000:201", "192.0.2.1"},
	} {
		assert.True(t, of(same[0]) == of(same[1]), "%s and %s do not share a bucket", same[0], same[1])
	}
	for _, other := range [][2]string{
		{"2001:db8::1", "2001:db8:0:1::1"}, {"192.0.2.1", "192.0.2.2"}, {"0.0.0.0", "::"}, {"127.0.0.1", "::1"}, {"64:ff9b:1::c000:201", "192.0.2.1"},
	} {
		assert.True(t, of(other[0]) != of(other[1]), "%s and %s share a bucket", other[0], other[1])
	}
	req := Request{Subject: "192.0.2.1", Route: "192.0.2.1", IP: netip.MustParseAddr("192.0.2.1")}
	seen := map[string][]string{}
	for _, per := range [][]string{{"ip"}, {"route"}, {"subject"}, {"ip", "route"}, {"ip", "subject"}, {"subject", "route"}, {"tenant", "subject", "route", "ip"}} {
		d := mustCompile(t, catalog.Limit{Per: per}).dimension(&req)
		other, twice := seen[d]
		assert.False(t, twice, "%v and %v share a bucket", per, other)
		seen[d] = per
	}
}

func TestRule_Cost_MostSpecificRouteTimesAmount(t *testing.T) {
	t.Parallel()
	limit := catalog.Limit{
		Per: []string{"tenant"}, Burst: 1000, Cost: 2, Match: catalog.Match{Meter: "b"},
		Costs: []catalog.RouteCost{{Route: "/v1/**", Cost: 3}, {Route: "/v1/*/export", Cost: 50}, {Route: "/v1/search", Cost: 7}, {Route: "/v1/s*", Cost: 5}},
	}
	perRequest := mustCompile(t, limit)
	limit.CostBy = "amount"
	perUnit := mustCompile(t, limit)
	for _, tc := range []struct {
		route                string
		amount               int64
		forRequest, forUnits int64
	}{
		{"", 4, 2, 8},
		{"/v2", 4, 2, 8},
		{"/v1/x", 4, 3, 12},
		{"/v1/search", 4, 7, 28},
		{"/v1/searches", 4, 5, 20},
		{"/v1/a/export", 4, 50, 200}, // longer than /v1/**, with the same text before the first wildcard
		{"/v2", 500, 2, 1000},
		{"/v2", 501, 2, 1001}, // every cost above the capacity is capacity + 1
		{"/v2", ledger.MaxAmount, 2, 1001},
		{"/v1/search", ledger.MaxAmount, 7, 1001},
	} {
		req := Request{Route: tc.route, Items: []ledger.Item{{Meter: "a", Amount: 9}, {Meter: "b", Amount: tc.amount}}}
		assert.Equal(t, tc.forRequest, perRequest.cost(&req), "%s: the cost of a request", tc.route)
		assert.Equal(t, tc.forUnits, perUnit.cost(&req), "%s: the cost of %d units", tc.route, tc.amount)
	}
}
