package ratelimit

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
	"github.com/quotasvc/quotasvc/internal/ratelimit/rule"
)

// mustReset resets a bucket of r. The tenant is acme, unless r is shared. It returns the bucket's name, and whether the
// bucket had a state.
func mustReset(t *testing.T, l *Limiter, r *rule.Rule, dimension string) (name string, existed bool) {
	t.Helper()
	name = testenv.Must(t).Get(rule.Bucket{Tenant: "acme", Rule: r, Dimension: dimension}.Name())
	existed = testenv.Must(t).Get(l.Reset(t.Context(), name))
	return name, existed
}

func TestReset_FillsOneBucketOnly(t *testing.T) {
	t.Parallel()
	for name, client := range bothStores(t) {
		l := patientLimiter(t, client, settings{})
		for _, spec := range []rule.Spec{
			{Rate: "2/day"},
			{Kind: "leaky_bucket", Rate: "2/day"},
			{Kind: "fixed_window", Rate: "2/month"},
			{Kind: "sliding_window", Rate: "2/31day"},
			{Kind: "sliding_log", Rate: "2/day"},
			{Rate: "2/day", ID: "shared", Shared: true},
		} {
			r := compile(t, spec)
			one, other := rule.Dimension("one"), rule.Dimension("other")
			take := func(dimension string) Verdict {
				return mustConsume(t, l, requestFor("acme", r, dimension, 0)).Verdicts[0]
			}
			for range 2 {
				take(one)
				take(other)
			}
			// The first is denied by Redis, the next from memory.
			require.True(t, !take(one).Allowed && !take(other).Allowed, "%s, %+v: a third request passes", name, spec)
			_, existed := mustReset(t, l, r, one)
			assert.True(t, existed, "%s, %+v", name, spec)
			v := take(one)
			assert.True(t, v.Allowed && v.Remaining == 1, "%s, %+v: after the reset %+v", name, spec, v)
			assert.False(t, take(other).Allowed, "%s, %+v: another bucket was reset", name, spec)
			mustReset(t, l, r, one)
			_, existed = mustReset(t, l, r, one)
			assert.False(t, existed, "%s, %+v: nothing was there", name, spec)
		}
	}
}

func TestReset_Concurrency_DropsItsLeases(t *testing.T) {
	t.Parallel()
	for name, client := range bothStores(t) {
		l := patientLimiter(t, client, settings{})
		r := compile(t, rule.Spec{Kind: "concurrency", Burst: 1})
		acquire := func() bool { return mustAcquire(t, l, LeaseRequest{Tenant: "acme", Rule: r}).Held }
		require.True(t, acquire() && !acquire(), "%s: not one lease at a time", name)
		_, existed := mustReset(t, l, r, "")
		assert.True(t, existed, name)
		assert.True(t, acquire(), "%s: the lease is still held", name)
	}
}

func TestReset_ForgetBucket_InOtherProcesses(t *testing.T) {
	t.Parallel()
	options := testenv.Redis(t)
	here, there := patientLimiter(t, patientClient(t, options), settings{}), patientLimiter(t, patientClient(t, options), settings{})
	r := compile(t, rule.Spec{Rate: "1/day"})
	req := Request{Tenant: "acme", Charges: []Charge{{Rule: r}}}
	for _, want := range []bool{true, false, false} {
		require.Equal(t, want, mustConsume(t, there, req).Allowed)
	}
	bucket, _ := mustReset(t, here, r, "")
	there.ForgetBucket(bucket)
	mustPass(t, there, req)
}

func TestReset_RedisAway_ErrorWithinTheBudget(t *testing.T) {
	t.Parallel()
	server := testenv.RedisPrivate(t)
	l := limiterOn(t, productionClient(t, server.URL), settings{})
	bucket, err := rule.Bucket{Tenant: "acme", Rule: compile(t, rule.Spec{Rate: "1/s"})}.Name()
	require.NoError(t, err)
	server.Pause()
	defer server.Resume()
	began := time.Now()
	_, err = l.Reset(t.Context(), bucket)
	assert.ErrorIs(t, err, ErrUnavailable)
	took := time.Since(began)
	assert.True(t, took <= decisionMost, "it took %s", took)
	stopped := New(nil, Config{})
	require.NoError(t, stopped.Stop(context.Background()))
	_, err = stopped.Reset(t.Context(), bucket)
	assert.ErrorIs(t, err, ErrStopped)
}

func TestBucket_Name_RefusesWhatIsNoBucket(t *testing.T) {
	t.Parallel()
	own := compile(t, rule.Spec{ID: "r", Rate: "1/s"})
	for _, bad := range []rule.Bucket{{Tenant: "acme"}, {Rule: own}, {Tenant: "<acme>", Rule: own}, {Tenant: "acme", Rule: own, Dimension: "x"}, {Tenant: "acme", Rule: &rule.Rule{}}} {
		_, err := bad.Name()
		assert.Error(t, err, "%+v has a name", bad)
	}
}
