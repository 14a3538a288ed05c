package catalog

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/kit/address"
	"github.com/quotasvc/quotasvc/internal/kit/bound"
	"github.com/quotasvc/quotasvc/internal/kit/errcode"
)

func TestLimit_FaultsByField(t *testing.T) {
	t.Parallel()
	many := make([]RouteCost, MaxCosts+1)
	for i := range many {
		many[i] = RouteCost{Route: fmt.Sprint("/", i), Cost: 1}
	}
	for name, tc := range map[string]struct {
		spoil   func(l *Limit)
		field   string
		message string
	}{
		"global beside others":      {func(l *Limit) { l.Per = []string{"tenant", "global"} }, "per[1]", "must be alone"},
		"global before others":      {func(l *Limit) { l.Per = []string{"global", "ip"} }, "per[0]", "must be alone"},
		"a dimension twice":         {func(l *Limit) { l.Per = []string{"ip", "ip"} }, "per[1]", "must appear once"},
		"six dimensions":            {func(l *Limit) { l.Per = []string{"tenant", "subject", "route", "ip", "a", "b"} }, "per", "1 to 4"},
		"** within a route":         {func(l *Limit) { l.Match.Route = "/a/**/b" }, "match.route", "** at its end"},
		"a line end in a route":     {func(l *Limit) { l.Match.Route = "/a\nb" }, "match.route", "printable"},
		"a tenant that is no id":    {func(l *Limit) { l.Match.Tenant = "<acme>" }, "match.tenant", "must be 1 to 255"},
		"a rate that is missing":    {func(l *Limit) { l.Rate = "" }, "rate", "60/s"},
		"NaN as a rate":             {func(l *Limit) { l.Rate = "NaN/s" }, "rate", "60/s"},
		"a negative rate":           {func(l *Limit) { l.Rate = "-5/s" }, "rate", "60/s"},
		"a rate of zero":            {func(l *Limit) { l.Rate = "0/s" }, "rate", "60/s"},
		"a fractional rate":         {func(l *Limit) { l.Rate = "0.5/s" }, "rate", "60/s"},
		"a negative cost":           {func(l *Limit) { l.Cost = -1 }, "cost", "from 1 to 9007199254740991"},
		"a huge cost":               {func(l *Limit) { l.Cost = bound.MaxAmount + 1 }, "cost", "from 1 to 9007199254740991"},
		"a route's cost of zero":    {func(l *Limit) { l.Costs = []RouteCost{{"/a", 0}} }, "costs[0].cost", "from 1 to 9007199254740991"},
		"a route's negative cost":   {func(l *Limit) { l.Costs = []RouteCost{{"/a", 1}, {"/b", -7}} }, "costs[1].cost", "from 1 to 9007199254740991"},
		"costs of no route":         {func(l *Limit) { l.Costs = []RouteCost{{"", 1}} }, "costs[0].route", "1 to 256"},
		"costs of a route, twice":   {func(l *Limit) { l.Costs = []RouteCost{{"/a", 1}, {"/a", 2}} }, "costs[1].route", "costs[0]"},
		"too many costs":            {func(l *Limit) { l.Costs = many }, "costs", "at most 100"},
		"cost by something else":    {func(l *Limit) { l.CostBy = "weight" }, "cost_by", "request, amount"},
		"cost by no meter's amount": {func(l *Limit) { l.CostBy = "amount" }, "cost_by", "match.meter"},
		"replacing itself":          {func(l *Limit) { l.Replaces = "r" }, "replaces", "another rule"},
		"replacing no id":           {func(l *Limit) { l.Replaces = "a b" }, "replaces", "must match"},
		"an unknown zone":           {func(l *Limit) { l.Kind, l.Timezone = kindFixedWindow, "Mars/Olympus" }, "timezone", "IANA"},
		"the machine's zone":        {func(l *Limit) { l.Kind, l.Timezone = kindFixedWindow, "Local" }, "timezone", "IANA"},
		"a zone without a calendar": {func(l *Limit) { l.Timezone = "UTC" }, "timezone", "fixed_window"},
		"the tenant's zone, shared": {func(l *Limit) {
			l.Kind, l.Timezone, l.Per = kindFixedWindow, ZoneOfTenant, []string{"ip"}
		}, "timezone", "all tenants"},
		"concurrency of nothing":         {func(l *Limit) { l.Kind, l.Rate = KindConcurrency, "" }, "burst", "no rate"},
		"concurrency with costs":         {func(l *Limit) { l.Kind, l.Costs = KindConcurrency, []RouteCost{{"/a", 1}} }, "costs", "lease"},
		"concurrency by amount":          {func(l *Limit) { l.Kind, l.CostBy, l.Match.Meter = KindConcurrency, "amount", "m" }, "cost_by", "lease"},
		"a ban after nothing":            {func(l *Limit) { l.Ban.For = "1m" }, "ban.after", "required"},
		"a debt below zero":              {func(l *Limit) { l.Debt = -1 }, "debt", "0 to 9007199254740991"},
		"a negative share of a region":   {func(l *Limit) { l.RegionShare = -1 }, "region_share", "1 to 100"},
		"more than a whole region":       {func(l *Limit) { l.RegionShare = 101 }, "region_share", "1 to 100"},
		"counting something else":        {func(l *Limit) { l.Counts = "failures" }, "counts", "attempts, successes"},
		"counting leases":                {func(l *Limit) { l.Kind, l.Counts = KindConcurrency, "attempts" }, "counts", "lease"},
		"a method in lower case":         {func(l *Limit) { l.Match.Method = "post" }, "match.method", "upper case"},
		"a route's key without a route":  {func(l *Limit) { l.RouteKey = RouteKeyPath }, "route_key", "per does not have route"},
		"an unknown form of routes":      {func(l *Limit) { l.Normalize = []string{"dots"} }, "normalize[0]", "encoded_slash"},
		"a form of routes twice":         {func(l *Limit) { l.Normalize = []string{"case", "case"} }, "normalize[1]", "once"},
		"a prefix without an address":    {func(l *Limit) { l.IPPrefix.V4 = 24 }, "ip_prefix", "per does not have ip"},
		"a long IPv4 prefix":             {func(l *Limit) { l.Per, l.IPPrefix.V4 = []string{"ip"}, 33 }, "ip_prefix.v4", "1 to 32"},
		"a long IPv6 prefix":             {func(l *Limit) { l.Per, l.IPPrefix.V6 = []string{"ip"}, 129 }, "ip_prefix.v6", "1 to 128"},
		"a rule of a megabyte":           {func(l *Limit) { l.Rule = strings.Repeat("x", 1<<20) }, "rule", "must match"},
		"a pattern of a megabyte":        {func(l *Limit) { l.Match.Route = strings.Repeat("*/", 1<<19) }, "match.route", "1 to 256"},
		"a rate of a megabyte":           {func(l *Limit) { l.Rate = strings.Repeat("9", 1<<20) + "/s" }, "rate", "60/s"},
		"a kind nobody knows":            {func(l *Limit) { l.Kind = "guess" }, "kind", "token_bucket"},
		"a mode nobody knows":            {func(l *Limit) { l.Mode = "off" }, "mode", "enforce, shadow"},
		"a policy nobody knows":          {func(l *Limit) { l.OnBackendError = "panic" }, "on_backend_error", "local_share, open, closed"},
		"a burst beyond exact integers":  {func(l *Limit) { l.Burst = bound.MaxAmount + 1 }, "burst", "from 1 to 9007199254740991"},
		"a negative burst":               {func(l *Limit) { l.Burst = -1 }, "burst", "from 1 to 9007199254740991"},
		"a period nobody can write down": {func(l *Limit) { l.Rate = "1/fortnights" }, "rate", "60/s"},
	} {
		l := Limit{Rule: "r", Per: []string{"tenant"}, Kind: "token_bucket", Rate: "5/s"}
		require.NoError(t, validate(&l))
		tc.spoil(&l)
		err := validate(&l)
		require.Equal(t, errcode.InvalidArgument, errcode.Of(err), name)
		require.Equal(t, []string{tc.field}, fieldsIn(t, err), name)
		require.ErrorContains(t, err, tc.message, name)
		require.Less(t, len(err.Error()), 500, "%s: a hostile value must not fill the answer", name)
	}
}

func TestPutLimit_StoresDefaults(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	seed(t, s)
	rich := Limit{
		Rule: "rich", Per: []string{"tenant", "subject", "route", "ip"}, Kind: kindFixedWindow, Rate: "100/day", Burst: 100, Cost: 2,
		Match: Match{Method: "GET", Route: "/v1/**", Meter: "api_calls", Plan: "starter", Tenant: "acme"},
		Costs: []RouteCost{{"/v1/export", 50}, {"/v1/*", 3}}, CostBy: CostByAmount, Debt: 30, Ban: Ban{3, "1m", "10m"}, Timezone: ZoneOfTenant, Mode: ModeShadow,
		OnBackendError: "closed", RegionShare: 40, Counts: countsSuccesses, RouteKey: RouteKeyPath, Normalize: []string{"case"},
		IPPrefix: address.Prefix{V4: 24, V6: 56},
	}
	plain := Limit{Rule: "plain", Per: []string{"global"}, Kind: "token_bucket", Rate: "7/s"}
	for _, l := range []Limit{rich, plain} {
		stored := put(t, s.PutLimit, l)
		require.Equal(t, stored, get(t, s.Limit, l.Rule))
		again, created, err := s.PutLimit(t.Context(), l)
		require.NoError(t, err)
		require.False(t, created)
		require.Equal(t, stored, again, "writing the same again changes nothing")
	}
	require.True(t, rich.same(get(t, s.Limit, "rich")))
	read := get(t, s.Limit, "plain")
	want := plain
	want.Burst, want.Cost, want.CostBy, want.Mode, want.OnBackendError, want.RegionShare = 7, 1, costByRequest, modeEnforce, localShare, 100
	want.Counts = countsSuccesses
	require.True(t, want.same(read))
	require.True(t, read.Shared())
	require.False(t, rich.Shared())
	calendar := put(t, s.PutLimit, Limit{Rule: "calendar", Per: []string{"tenant"}, Kind: kindFixedWindow, Rate: "7/day"})
	require.Equal(t, "UTC", calendar.Timezone)
	slots := put(t, s.PutLimit, Limit{Rule: "slots", Per: []string{"tenant"}, Kind: KindConcurrency, Burst: 3})
	require.Empty(t, slots.Rate)
}

// If a limit does not set counts, its other fields decide whether it counts attempts or successes.
func TestLimit_Normalize_CountsByWhatItGuards(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		limit Limit
		want  string
	}{
		"per tenant":             {Limit{Per: []string{PerTenant}}, countsSuccesses},
		"per tenant and route":   {Limit{Per: []string{PerTenant, PerRoute}}, countsSuccesses},
		"per route":              {Limit{Per: []string{PerRoute}}, CountsAttempts},
		"per address":            {Limit{Per: []string{PerTenant, PerIP}}, CountsAttempts},
		"closed":                 {Limit{Per: []string{PerTenant}, OnBackendError: backendClosed}, CountsAttempts},
		"closed, but it says so": {Limit{Per: []string{PerIP}, Counts: countsSuccesses}, countsSuccesses},
		"leases":                 {Limit{Per: []string{PerIP}, Kind: KindConcurrency}, ""},
	} {
		tc.limit.normalize()
		require.Equal(t, tc.want, tc.limit.Counts, name)
	}
}
