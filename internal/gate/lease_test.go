package gate

import (
	"errors"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/catalog"
	"github.com/quotasvc/quotasvc/internal/catalog/block"
	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/lab/testenv"
	"github.com/quotasvc/quotasvc/internal/ratelimit"
)

// concurrencyLimit returns a limit of at most burst leases at a time.
func concurrencyLimit(rule string, burst int64, change ...func(*catalog.Limit)) catalog.Limit {
	l := catalog.Limit{Rule: rule, Per: []string{"tenant"}, Kind: "concurrency", Burst: burst}
	for _, f := range change {
		f(&l)
	}
	return l
}

// acquires takes a lease, which must be granted. It returns the lease and its id.
func (in *instance) acquires(req LeaseRequest) (Lease, ratelimit.LeaseID) {
	in.t.Helper()
	held, err := in.Acquire(in.t.Context(), req)
	require.NoError(in.t, err)
	id, err := in.ParseLease(held.ID)
	require.NoError(in.t, err)
	return held, id
}

func TestLease_MostSpecificRule_Decides(t *testing.T) {
	t.Parallel()
	match := func(replaces string, m catalog.Match) func(*catalog.Limit) {
		return func(l *catalog.Limit) { l.Replaces, l.Match = replaces, m }
	}
	general := []catalog.Limit{
		concurrencyLimit("exports", 2), concurrencyLimit("of-plan", 5, match("exports", catalog.Match{Plan: "pro"})),
		concurrencyLimit("of-tenant", 9, match("of-plan", catalog.Match{Tenant: "acme"})),
		limitNamed("calls", "", catalog.Match{}), limitNamed("calls-for-exports", "exports", catalog.Match{}),
		concurrencyLimit("per-subject", 1, func(l *catalog.Limit) { l.Per = []string{"subject"} }),
		concurrencyLimit("per-route", 1, func(l *catalog.Limit) { l.Per = []string{"tenant", "route"} }),
		concurrencyLimit("per-ip", 1, func(l *catalog.Limit) { l.Per = []string{"ip"} }),
		concurrencyLimit("v1", 1, match("", catalog.Match{Route: "/v1/**"})),
		concurrencyLimit("own", 1),
	}
	s := mustRuleSet(t, []catalog.Limit{concurrencyLimit("own", 7)}, general)
	for _, tc := range []struct {
		rule string
		req  Request
		plan string
		want string // the rule that decides, or the beginning of the error
	}{
		{"exports", Request{Tenant: "b"}, "free", "exports"},
		{"exports", Request{Tenant: "b"}, "pro", "of-plan"},
		{"exports", Request{Tenant: "acme"}, "free", "of-tenant"},
		{"of-plan", Request{Tenant: "acme"}, "pro", "of-tenant"},
		{"of-plan", Request{Tenant: "b"}, "free", "not_found: the limit does not apply"},
		{"of-tenant", Request{Tenant: "acme"}, "pro", "of-tenant"},
		{"nothing", Request{Tenant: "b"}, "free", "not_found: the tenant has no limit"},
		{"calls", Request{Tenant: "b"}, "free", "invalid_argument: rule: must be of kind concurrency; it is of kind token_bucket"},
		{"per-subject", Request{Tenant: "b"}, "free", "invalid_argument: subject: is required"},
		{"per-subject", Request{Tenant: "b", Subject: "ann"}, "free", "per-subject"},
		{"per-route", Request{Tenant: "b"}, "free", "invalid_argument: route: is required"},
		{"per-route", Request{Tenant: "b", Route: "/x"}, "free", "per-route"},
		{"per-ip", Request{Tenant: "b"}, "free", "invalid_argument: ip: is required"},
		{"per-ip", Request{Tenant: "b", IP: netip.MustParseAddr("192.0.2.1")}, "free", "per-ip"},
		{"v1", Request{Tenant: "b", Route: "/v2/x"}, "free", "not_found: the limit does not apply"},
		{"v1", Request{Tenant: "b", Route: "/v1/x"}, "free", "v1"},
		{"own", Request{Tenant: "b"}, "free", "own"},
	} {
		var got string
		m, err := s.lease(tc.rule, &tc.req, tc.plan)
		if e, ok := errors.AsType[*errcode.Error](err); ok {
			got = string(e.Code) + ": "
			if e.Field() != "" {
				got += e.Field() + ": "
			}
			got += e.Detail
		} else if got = m.compiled.ID; got == "own" && m.compiled.Burst != 7 {
			t.Error("the general rule replaced the plan's own")
		}
		assert.True(t, strings.HasPrefix(got, tc.want),
			"%s for %+v on %s: %s, want %s", tc.rule, tc.req, tc.plan, got, tc.want)
	}
}

func TestCheckLimit_Concurrency_NamesNoMeter(t *testing.T) {
	t.Parallel()
	l := concurrencyLimit("exports", 1, func(l *catalog.Limit) { l.Match.Meter = "calls" })
	err := CheckLimit(&l)
	assert.True(t, err != nil && strings.Contains(err.Error(), "match.meter"), err)
}

func TestLease_AcquireRenewRelease(t *testing.T) {
	t.Parallel()
	in := newShared(t).catalogue(concurrencyLimit("exports", 2))
	ctx := t.Context()
	req := LeaseRequest{Tenant: "acme", Rule: "exports", Key: "job-1"}
	n, err := in.Acquire(ctx, LeaseRequest{Tenant: "acme", Rule: "exports", DryRun: true})
	assert.True(t, err == nil && n.ID == "" && n.InUse == 0 && n.Remaining == 2 && n.ExpiresAt.IsZero(), "dry run: %+v, %v", n, err)
	first, err := in.Acquire(ctx, req)
	require.True(t, err == nil && first.ID != "" && first.Rule == "exports" && first.InUse == 1 && first.Remaining == 1 && first.Limit == 2 && first.Counted &&
		first.TTL == time.Minute, "%+v, %v", first, err)
	again, err := in.Acquire(ctx, req)
	assert.True(t, err == nil && again.Replayed && again.ID == first.ID && again.InUse == 1,
		"the same key: %+v, %v", again, err)
	req.Key = "job-2"
	_, err = in.Acquire(ctx, req)
	assert.NoError(t, err)
	req.Key = "job-3"
	_, err = in.Acquire(ctx, req)
	limited, ok := errors.AsType[*RateLimited](err)
	assert.True(t, ok && slices.Equal(limited.Violated, []string{"exports"}) && limited.RetryAfter > 0 && len(limited.Verdicts) == 1 && limited.Verdicts[0].Concurrent &&
		limited.Verdicts[0].Policy == `"exports";q=2;qu="concurrent-requests"`, "beyond the capacity: %+v", err)
	id, err := in.ParseLease(first.ID)
	require.NoError(t, err)
	renewed, err := in.Renew(ctx, id, time.Hour)
	assert.True(t, err == nil && renewed.ID == first.ID && renewed.TTL == time.Hour && renewed.InUse == 2, "%+v, %v", renewed, err)
	assert.NoError(t, errors.Join(in.Release(ctx, id), in.Release(ctx, id)))
	_, err = in.Renew(ctx, id, 0)
	in.expectCode(CodeLeaseNotFound, "renew what was given back", err)
	_, err = in.Acquire(ctx, req)
	assert.NoError(t, err, "after a release")
	// A concurrency limit does not affect checks and consumes, even if all its leases are held.
	done, err := in.Consume(ctx, request("k1", "calls", 1))
	assert.True(t, err == nil && len(done.Limits) == 0, "%+v, %v", done.Limits, err)
}

func TestLease_SuspendedTenant_OnlyReleases(t *testing.T) {
	t.Parallel()
	in := newShared(t).catalogue(concurrencyLimit("exports", 1), concurrencyLimit("jobs", 1))
	ctx := t.Context()
	acquire := func(tenant, rule string) (Lease, error) {
		return in.Acquire(ctx, LeaseRequest{Tenant: tenant, Rule: rule, Subject: "ann"})
	}
	_, err := acquire("nobody", "exports")
	in.expectCode(errcode.TenantNotFound, "a tenant that does not exist", err)
	_, err = acquire("acme", "made-up")
	in.expectCode(errcode.NotFound, "a limit that does not exist", err)
	_, err = in.Acquire(ctx, LeaseRequest{Tenant: "acme", Rule: "exports", TTL: 2 * time.Hour})
	in.expectCode(errcode.InvalidArgument, "two hours", err)

	_, id := in.acquires(LeaseRequest{Tenant: "acme", Rule: "exports", Subject: "ann"})
	in.putTenant(catalog.Tenant{ID: "acme", Plan: "basic", Status: catalog.StatusSuspended})
	testenv.Eventually(t, func() bool {
		facts, err := in.tenants.facts(ctx, "acme")
		return err == nil && facts.suspended
	}, "the tenant is suspended here")
	_, err = acquire("acme", "jobs")
	in.expectCode(errcode.TenantSuspended, "acquire while suspended", err)
	_, err = in.Renew(ctx, id, 0)
	in.expectCode(errcode.TenantSuspended, "renew while suspended", err)
	in.expectCode("", "release while suspended", in.Release(ctx, id))
}

func TestLease_BlockedIsRefused_ExemptIsNot(t *testing.T) {
	t.Parallel()
	in := newShared(t).catalogue(concurrencyLimit("exports", 1))
	ctx := t.Context()
	exports := func(subject string) LeaseRequest {
		return LeaseRequest{Tenant: "acme", Rule: "exports", Subject: subject}
	}
	_, id := in.acquires(exports("ann"))
	in.putBlock(block.Block{Kind: block.KindSubject, Tenant: "acme", Value: "vip", Action: block.ActionAllow})
	exempt, _ := in.acquires(exports("vip"))
	assert.True(t, !exempt.Counted && exempt.ID != "" && exempt.TTL == time.Minute, "beyond the capacity: %+v", exempt)
	in.putBlock(block.Block{Kind: block.KindSubject, Tenant: "acme", Value: "mallory"})
	_, err := in.Acquire(ctx, exports("mallory"))
	in.expectCode(CodeForbidden, "mallory is blocked", err)
	in.putBlock(block.Block{Kind: block.KindTenant, Value: "acme"})
	_, err = in.Renew(ctx, id, 0)
	in.expectCode(CodeForbidden, "acme is blocked", err)
	in.expectCode("", "release while blocked", in.Release(ctx, id))
}

func TestLease_DeletedRule_LeaseNotFound(t *testing.T) {
	t.Parallel()
	in := newShared(t).catalogue()
	ctx := t.Context()
	in.putLimits(concurrencyLimit("exports", 1))
	_, id := in.acquires(LeaseRequest{Tenant: "acme", Rule: "exports"})
	require.NoError(t, in.tenants.catalog.DeleteLimit(ctx, "exports"))
	testenv.Eventually(t, func() bool {
		_, err := in.Renew(ctx, id, 0)
		return err != nil && CodeOf(err) == CodeLeaseNotFound
	}, "the lease ends with its limit")
	in.expectCode("", "release after that", in.Release(ctx, id))
}

func TestLease_RedisAway_EachRulesPolicyDecides(t *testing.T) {
	t.Parallel()
	server := testenv.RedisPrivate(t)
	policy := func(p string) func(*catalog.Limit) { return func(l *catalog.Limit) { l.OnBackendError = p } }
	in := newInstance(t, testenv.Postgres(t), serviceClient(t, server.URL))
	in.catalogue(concurrencyLimit("share", 2), concurrencyLimit("open", 1, policy("open")), concurrencyLimit("closed", 1, policy("closed")))
	_, id := in.acquires(LeaseRequest{Tenant: "acme", Rule: "closed"})
	server.Kill()
	for i := range 3 {
		share, err := in.Acquire(t.Context(), LeaseRequest{Tenant: "acme", Rule: "share"})
		_, limited := errors.AsType[*RateLimited](err)
		assert.True(t, limited == (i == 2) && (err != nil || share.Degraded && share.Counted), "share %d: %+v, %v", i, share, err)
		open, err := in.Acquire(t.Context(), LeaseRequest{Tenant: "acme", Rule: "open"})
		assert.True(t, err == nil && !open.Counted && open.Degraded && open.Limit == 1 && open.ID != "",
			"open: %+v, %v", open, err)
	}
	_, err := in.Acquire(t.Context(), LeaseRequest{Tenant: "acme", Rule: "closed"})
	reduced, ok := errors.AsType[*ReducedCapacity](err)
	assert.True(t, ok && slices.Equal(reduced.Violated, []string{"closed"}) && reduced.RetryAfter == reducedRetryAfter, "closed: %v", err)
	_, err = in.Renew(t.Context(), id, 0)
	in.expectCode(errcode.Unavailable, "renew a lease of a closed rule", err)
	in.expectCode(errcode.Unavailable, "release a lease in Redis", in.Release(t.Context(), id))
}

// A catalogue may change every day. The metric series of its deleted rules must be removed.
func TestTenants_DeletedRule_ItsMetricsGo(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewRegistry()
	in := newInstance(t, testenv.Postgres(t), nil, func(*Config) {})
	in.limiter = ratelimit.New(nil, ratelimit.Config{Metrics: ratelimit.NewMetrics(reg)})
	in.tenants = newTenants(in.tenants.catalog, Config{Log: slog.New(slog.DiscardHandler)}, in.limiter.Forget)
	in.catalogue()
	series := func() int {
		t.Helper()
		n, err := testutil.GatherAndCount(reg, "quotasvc_limit_decisions_total")
		require.NoError(t, err)
		return n
	}
	check := func() int { return len(in.checks(request("", "calls", 1)).Limits) }
	in.putLimits(limitNamed("stays", "", catalog.Match{}), limitNamed("goes", "", catalog.Match{}))
	testenv.Eventually(t, func() bool { return check() == 2 }, "both apply")
	require.Equal(t, 2, series(), "series of two rules")
	require.NoError(t, in.tenants.catalog.DeleteLimit(t.Context(), "goes"))
	testenv.Eventually(t, func() bool { return check() == 1 }, "one applies")
	assert.Equal(t, 1, series(), "series of one rule")
}

// A decision that was under way when its rule was deleted may create the rule's series again, so the series is
// removed once more.
func TestTenants_DeletedRule_IsForgottenTwice(t *testing.T) {
	t.Parallel()
	var forgotten []string
	terms := &tenants{log: slog.New(slog.DiscardHandler), forget: func(labels []string) { forgotten = labels }}
	before := &catalog.Snapshot{}
	for i, step := range []struct{ rules, gone string }{
		{"a b c", ""}, {"a c", "b"}, {"a", "b c"}, {"a b", "c"}, {"a b", ""}, {"", "a b"}, {"a", "b"},
	} {
		snapshot := &catalog.Snapshot{Plans: map[string]*catalog.Plan{}}
		var own []catalog.Limit
		for n, rule := range strings.Fields(step.rules) {
			if n == 0 {
				own = append(own, limitNamed(rule, "", catalog.Match{}))
			} else {
				l := limitNamed(rule, "", catalog.Match{})
				snapshot.Limits = append(snapshot.Limits, &l)
			}
		}
		snapshot.Plans["p"] = &catalog.Plan{ID: "p", Limits: own}
		forgotten = nil
		snapshot.Compiled = terms.compile(snapshot, before)
		before = snapshot
		slices.Sort(forgotten)
		got := strings.Join(forgotten, " ")
		assert.True(t, got == step.gone, "change %d: %q is forgotten, want %q", i, got, step.gone)
	}
}
