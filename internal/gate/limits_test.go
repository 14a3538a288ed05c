package gate

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/catalog"
	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/lab/testenv"
	"github.com/quotasvc/quotasvc/internal/ledger"
	"github.com/quotasvc/quotasvc/internal/ratelimit"
)

// onRedisAndLocal runs a test twice: with limits in Redis, and with limits in the process (local mode).
func onRedisAndLocal(t *testing.T, test func(t *testing.T, in *instance)) {
	t.Parallel()
	t.Run("redis", func(t *testing.T) {
		t.Parallel()
		test(t, newShared(t))
	})
	t.Run("local", func(t *testing.T) {
		t.Parallel()
		test(t, newInstance(t, testenv.Postgres(t), nil))
	})
}

// putLimits stores general limits and waits until they are in force.
func (in *instance) putLimits(limits ...catalog.Limit) {
	in.t.Helper()
	for _, l := range limits {
		stored, _, err := in.tenants.catalog.PutLimit(in.t.Context(), l)
		require.NoError(in.t, err)
		testenv.Eventually(in.t, func() bool {
			return slices.ContainsFunc(in.tenants.catalog.Snapshot().Limits, func(l *catalog.Limit) bool {
				return l.Rule == stored.Rule && l.UpdatedAt.Equal(stored.UpdatedAt)
			})
		}, "the limit is in the snapshot")
	}
}

// charge charges the limits of a request, and returns the result.
func (in *instance) charge(req Request) limitsResult {
	in.t.Helper()
	f, err := in.tenants.facts(in.t.Context(), req.Tenant)
	require.NoError(in.t, err)
	res, err := in.limits(in.t.Context(), &req, &f, chargeAll, nil)
	require.NoError(in.t, err)
	return res
}

// verdict returns the verdict of a rule. It returns nil if the rule did not apply.
func (res *limitsResult) verdict(rule string) *LimitVerdict {
	for i := range res.verdicts {
		if res.verdicts[i].Rule == rule {
			return &res.verdicts[i]
		}
	}
	return nil
}

func (res *limitsResult) ruleNames() string {
	names := make([]string, len(res.verdicts))
	for i := range res.verdicts {
		names[i] = res.verdicts[i].Rule
	}
	return strings.Join(names, " ")
}

// perDay returns a limit whose buckets do not refill while a test runs.
func perDay(rule string, n int64, per ...string) catalog.Limit {
	return catalog.Limit{Rule: rule, Per: per, Kind: "token_bucket", Rate: fmt.Sprintf("1/%dday", 300), Burst: n}
}

func TestLimits_PerIPSubjectRoute_EachHasItsOwnBucket(t *testing.T) {
	onRedisAndLocal(t, func(t *testing.T, in *instance) {
		in.catalogue()
		in.putTenant(catalog.Tenant{ID: "other", Plan: "basic"})
		in.putLimits(perDay("one", 1, "ip", "subject", "route"))
		used := map[string]bool{}
		for range 2 {
			for _, tenant := range []string{"acme", "other"} {
				for _, ip := range []string{"192.0.2.1", "192.0.2.2", "2001:db8::1", "2001:db8:0:1::1"} {
					for _, subject := range []string{"ann", "bob"} {
						for _, route := range []string{"/a", "/b"} {
							req := Request{
								Tenant: tenant, Subject: subject, Route: route, IP: netip.MustParseAddr(ip), Items: []ledger.Item{{Meter: "calls", Amount: 1}},
							}
							got := in.charge(req)
							name := tenant + ip + subject + route
							assert.True(t, (got.refusal == nil) != used[name],
								"%s, asked before: %v, got %v", name, used[name], got.refusal)
							used[name] = true
						}
					}
				}
			}
		}
		req := Request{Tenant: "acme", Subject: "ann", Route: "/a", Items: []ledger.Item{{Meter: "calls", Amount: 1}}}
		got := in.charge(req)
		assert.Empty(t, got.verdicts, "a request without an address: %+v", got.verdicts)
	})
}

func TestLimits_SharedRules_OneBucketForAllTenants(t *testing.T) {
	onRedisAndLocal(t, func(t *testing.T, in *instance) {
		in.catalogue()
		in.putTenant(catalog.Tenant{ID: "other", Plan: "basic"})
		in.putLimits(perDay("by-address", 3, "ip"), perDay("by-route", 4, "route"), perDay("all", 5, "global"), perDay("own", 9, "tenant"))
		ask := func(tenant, ip, route string) (violated []string) {
			t.Helper()
			req := Request{Tenant: tenant, Route: route, IP: netip.MustParseAddr(ip), Items: []ledger.Item{{Meter: "calls", Amount: 1}}}
			res := in.charge(req)
			assert.Len(t, res.verdicts, 4)
			if refused, ok := errors.AsType[*RateLimited](res.refusal); ok {
				return refused.Violated
			}
			return nil
		}
		for i, step := range []struct {
			tenant, ip, route string
			violated          string
		}{
			{"acme", "192.0.2.1", "/a", ""},
			{"other", "::ffff:192.0.2.1", "/a", ""},
			{"acme", "192.0.2.1", "/b", ""},
			{"other", "192.0.2.1", "/b", "by-address"}, // the fourth request from this address
			{"acme", "192.0.2.2", "/a", ""},
			{"other", "192.0.2.3", "/a", ""}, // the fifth request in all
			{"acme", "192.0.2.4", "/a", "all by-route"},
			{"acme", "192.0.2.4", "/c", "all"},
			{"other", "192.0.2.1", "/a", "all by-address by-route"},
		} {
			got := ask(step.tenant, step.ip, step.route)
			slices.Sort(got)
			assert.True(t, strings.Join(got, " ") == step.violated,
				"step %d: violated %v, want %s", i, got, step.violated)
		}
		// If a shared limit denied a request, no limit was charged. Three requests of acme passed, and two requests
		// of other passed.
		for tenant, want := range map[string]int64{"acme": 9 - 3, "other": 9 - 2} {
			for _, v := range in.checks(forTenant(tenant, request("", "calls", 1))).Limits {
				assert.False(t, v.Rule == "own" && v.Remaining != want,
					"%s has %d tokens of its own left, want %d", tenant, v.Remaining, want)
			}
		}
	})
}

func TestLimits_PlanTenantAndGeneral_ApplyTogether(t *testing.T) {
	onRedisAndLocal(t, func(t *testing.T, in *instance) {
		own := func(rule string, n int64, match catalog.Match, replaces string) catalog.Limit {
			l := perDay(rule, n, "tenant")
			l.Match, l.Replaces = match, replaces
			return l
		}
		in.catalogue(own("plan-only", 50, catalog.Match{}, ""), own("shared-name", 7, catalog.Match{}, ""))
		for _, id := range []string{"big", "free"} {
			in.putPlan(catalog.Plan{ID: "free", Allowances: in.tenants.catalog.Snapshot().Plans["basic"].Allowances})
			in.putTenant(catalog.Tenant{ID: id, Plan: map[string]string{"big": "basic", "free": "free"}[id]})
		}
		in.putLimits(
			own("shared-name", 3, catalog.Match{}, ""),
			own("base", 10, catalog.Match{}, ""),
			own("base-basic", 20, catalog.Match{Plan: "basic"}, "base"),
			own("base-big", 30, catalog.Match{Tenant: "big"}, "base-basic"),
			own("base-search", 5, catalog.Match{Route: "/v1/search/**"}, "base"),
			perDay("everybody", 300, "global"),
		)
		for _, tc := range []struct {
			tenant, route string
			want          string // the rules that apply, each with its capacity
		}{
			{"acme", "", "plan-only 50 shared-name 7 base-basic 20<base everybody 300"},
			{"acme", "/v1/search/x", "plan-only 50 shared-name 7 base-basic 20<base everybody 300"},
			{"big", "", "plan-only 50 shared-name 7 base-big 30<base-basic everybody 300"},
			{"free", "", "base 10 everybody 300 shared-name 3"},
			{"free", "/v1/search/x", "base-search 5<base everybody 300 shared-name 3"},
			{"nobody", "", "base 10 everybody 300 shared-name 3"},
		} {
			res := in.charge(Request{Tenant: tc.tenant, Route: tc.route, Items: []ledger.Item{{Meter: "calls", Amount: 1}}})
			var got []string
			for _, v := range res.verdicts {
				name := fmt.Sprintf("%s %d", v.Rule, v.Limit)
				if v.Replaces != "" {
					name += "<" + v.Replaces
				}
				assert.EqualValues(t, "token_bucket", v.Kind, v)
				got = append(got, name)
			}
			assert.True(t, strings.Join(got, " ") == tc.want,
				"%s on %q: %s, want %s", tc.tenant, tc.route, strings.Join(got, " "), tc.want)
		}
	})
}

func TestLimits_Cost_FollowsRouteAndAmount(t *testing.T) {
	onRedisAndLocal(t, func(t *testing.T, in *instance) {
		in.catalogue()
		work := perDay("work", 100, "tenant")
		work.Costs = []catalog.RouteCost{{Route: "/v1/*/export", Cost: 60}, {Route: "/v1/**", Cost: 5}}
		units := perDay("units", 30, "tenant")
		units.CostBy, units.Cost, units.Match = catalog.CostByAmount, 2, catalog.Match{Meter: "other"}
		in.putLimits(work, units)
		ask := func(route string, items ...ledger.Item) limitsResult {
			return in.charge(Request{Tenant: "acme", Route: route, Items: items})
		}
		call, other := ledger.Item{Meter: "calls", Amount: 999}, func(n int64) ledger.Item { return ledger.Item{Meter: "other", Amount: n} }
		for i, step := range []struct {
			res   limitsResult
			work  int64
			units int64 // -1: the limit does not apply
		}{
			{ask("", call), 99, -1},
			{ask("/v1/x", call), 94, -1},
			{ask("/v1/x/export", call), 34, -1},
			{ask("/v1/x/export", call), 34, -1}, // denied
			{ask("", call, other(7)), 33, 16},
			{ask("", other(8)), 32, 0},
			{ask("", other(1)), 32, 0}, // the limit units denies it, so the limit work is not charged
			{ask("", call), 31, -1},
		} {
			assert.Equal(t, step.work, step.res.verdict("work").Remaining, "step %d: tokens of work are left", i)
			v := step.res.verdict("units")
			assert.True(t, (v == nil) == (step.units < 0) && (v == nil || v.Remaining == step.units),
				"step %d: units: %+v, want %d left", i, v, step.units)
		}
		for _, amount := range []int64{16, ledger.MaxAmount} {
			req := Request{Tenant: "acme", Key: "k", Items: []ledger.Item{other(amount)}}
			_, err := in.Consume(t.Context(), req)
			refused, ok := errors.AsType[*CostExceedsCapacity](err)
			assert.True(t, ok && slices.Equal(refused.Violated, []string{"units"}), "%d units: %v", amount, err)
			assert.Equal(t, CodeCostExceedsCapacity, in.checks(req).Code)
		}
	})
}

func TestLimits_LeakyBucket_ReturnsDelay(t *testing.T) {
	onRedisAndLocal(t, func(t *testing.T, in *instance) {
		in.catalogue()
		in.putLimits(catalog.Limit{Rule: "queue", Per: []string{"tenant"}, Kind: "leaky_bucket", Rate: "1/h", Burst: 3})
		for i, turn := range []time.Duration{0, time.Hour, 2 * time.Hour} {
			res := in.charge(request("", "calls", 1))
			v := res.verdict("queue")
			assert.True(t, res.refusal == nil && v.Kind == "leaky_bucket")
			assert.True(t, v.Delay <= turn && v.Delay >= turn-time.Minute,
				"request %d: %v, %+v; want a delay of %s", i, res.refusal, v, turn)
		}
		res := in.charge(request("", "calls", 1))
		v := res.verdict("queue")
		assert.True(t, res.refusal != nil && v.Delay == 0, "beyond the queue: %v, %+v", res.refusal, v)
		assert.True(t, v.RetryAfter <= time.Hour && v.RetryAfter >= time.Hour-time.Minute, v)
	})
}

func TestLimits_FixedWindow_EndsInTheRulesTimeZone(t *testing.T) {
	onRedisAndLocal(t, func(t *testing.T, in *instance) {
		in.catalogue()
		month := func(rule, zone string) catalog.Limit {
			return catalog.Limit{Rule: rule, Per: []string{"tenant"}, Kind: "fixed_window", Rate: "1/month", Timezone: zone}
		}
		in.putLimits(month("own", catalog.ZoneOfTenant), month("fixed", "Asia/Kathmandu"), month("utc", ""))
		for _, zone := range []string{"UTC", "Pacific/Kiritimati", "America/New_York"} {
			tenant := strings.ReplaceAll(strings.ToLower(zone), "/", "-")
			in.putTenant(catalog.Tenant{ID: tenant, Plan: "basic", Timezone: zone})
			req := Request{Tenant: tenant, Items: []ledger.Item{{Meter: "calls", Amount: 1}}}
			in.charge(req)
			res := in.charge(req)
			for rule, of := range map[string]string{"own": zone, "fixed": "Asia/Kathmandu", "utc": "UTC"} {
				loc, err := time.LoadLocation(of)
				require.NoError(t, err)
				now := time.Now().In(loc)
				end := time.Date(now.Year(), now.Month()+1, 1, 0, 0, 0, 0, loc)
				v := res.verdict(rule)
				wait := end.Sub(now)
				assert.True(t, !v.Allowed && (v.RetryAfter-wait).Abs() <= time.Minute,
					"%s of a tenant in %s: %+v, want the month to end in %s", rule, zone, v, wait)
			}
		}
	})
}

func TestLimits_MoreThan16_AreAnError(t *testing.T) {
	t.Parallel()
	in := newShared(t).catalogue()
	var items []ledger.Item
	for i := range ledger.ItemsMax {
		meter := fmt.Sprintf("m%02d", i)
		in.putMeters(meter)
		l := perDay("of-"+meter, 5, "tenant")
		l.Match.Meter = meter
		in.putLimits(l)
		items = append(items, ledger.Item{Meter: meter, Amount: 1})
	}
	in.putLimits(perDay("all", 5, "tenant"))
	req := Request{Tenant: "acme", Key: "k", Items: items}
	_, checkErr := in.Check(t.Context(), req)
	_, consumeErr := in.Consume(t.Context(), req)
	for _, err := range []error{checkErr, consumeErr} {
		tooMany, ok := errors.AsType[*TooManyLimits](err)
		assert.True(t, ok && len(tooMany.Rules) == ratelimit.MaxCharges+1 && CodeOf(err) == CodeTooManyLimits, err)
	}
	req.Items = items[1:]
	res := in.charge(req)
	assert.Len(t, res.verdicts, ratelimit.MaxCharges, "limits were asked")
	// The catalogue refuses a limit if it would be the 17th limit that applies to a request for one meter.
	var err error
	for i := range ratelimit.MaxCharges {
		l := perDay(fmt.Sprint("general", i), 5, "tenant")
		if _, _, err = in.tenants.catalog.PutLimit(t.Context(), l); err != nil {
			const refusal = "would let up to 17 limits apply to one request"
			assert.True(t, errcode.Of(err) == errcode.InvalidArgument && strings.Contains(err.Error(), refusal) &&
				i == 14, "limit %d: %v", i, err)
			break
		}
	}
	assert.Error(t, err, "17 limits for one request are stored")
}
