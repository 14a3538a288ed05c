package ratelimit

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
	"github.com/quotasvc/quotasvc/internal/ratelimit/rule"
	"github.com/quotasvc/quotasvc/internal/store/redisstore"
)

func TestReset_FillsOneBucketOnly(t *testing.T) {
	t.Parallel()
	for name, client := range map[string]func() redis.UniversalClient{
		"redis": func() redis.UniversalClient { return patientClient(t, testenv.Redis(t)) },
		"local": func() redis.UniversalClient { return nil },
	} {
		l := patientLimiter(t, client(), settings{})
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
				t.Helper()
				d, err := l.Consume(t.Context(), Request{Tenant: "acme", Charges: []Charge{{Rule: r, Dimension: dimension}}})
				require.NoError(t, err)
				return d.Verdicts[0]
			}
			for range 2 {
				take(one)
				take(other)
			}
			if take(one).Allowed || take(other).Allowed { // the first is denied by Redis, the next from memory
				t.Fatalf("%s, %+v: a third request passes", name, spec)
			}
			bucket, err := rule.Bucket{Tenant: "acme", Rule: r, Dimension: one}.Name()
			require.NoError(t, err)
			existed, err := l.Reset(t.Context(), bucket)
			assert.True(t, err == nil && existed, "%s, %+v: %v, %v", name, spec, existed, err)
			v := take(one)
			assert.True(t, v.Allowed && v.Remaining == 1, "%s, %+v: after the reset %+v", name, spec, v)
			v = take(other)
			assert.False(t, v.Allowed, "%s, %+v: another bucket was reset: %+v", name, spec, v)
			_, err = l.Reset(t.Context(), bucket)
			require.NoError(t, err)
			existed, err = l.Reset(t.Context(), bucket)
			assert.True(t, err == nil && !existed, "%s, %+v: nothing was there, and %v, %v", name, spec, existed, err)
		}
	}
}

func TestReset_Concurrency_DropsItsLeases(t *testing.T) {
	t.Parallel()
	for name, client := range map[string]redis.UniversalClient{"redis": patientClient(t, testenv.Redis(t)), "local": nil} {
		l := patientLimiter(t, client, settings{})
		r := compile(t, rule.Spec{Kind: "concurrency", Burst: 1})
		acquire := func() bool {
			t.Helper()
			lease, err := l.Acquire(t.Context(), LeaseRequest{Tenant: "acme", Rule: r})
			require.NoError(t, err)
			return lease.Held
		}
		require.True(t, acquire() && !acquire(), "%s: not one lease at a time", name)
		bucket, err := rule.Bucket{Tenant: "acme", Rule: r}.Name()
		require.NoError(t, err)
		existed, err := l.Reset(t.Context(), bucket)
		assert.True(t, err == nil && existed, "%s: %v, %v", name, existed, err)
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
		d, err := there.Consume(t.Context(), req)
		require.True(t, err == nil && d.Allowed == want, "%+v, %v", d, err)
	}
	bucket, err := rule.Bucket{Tenant: "acme", Rule: r}.Name()
	require.NoError(t, err)
	_, err = here.Reset(t.Context(), bucket)
	require.NoError(t, err)
	there.ForgetBucket(bucket)
	d, err := there.Consume(t.Context(), req)
	assert.True(t, err == nil && d.Allowed, "%+v, %v", d, err)
}

func TestReset_RedisAway_ErrorWithinTheBudget(t *testing.T) {
	t.Parallel()
	server := testenv.RedisPrivate(t)
	client, err := redisstore.NewClient(server.URL)
	require.NoError(t, err)
	t.Cleanup(func() { _ = client.Close() })
	l := limiterOn(t, client, settings{})
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

func TestBucket_Name_IsTheChargedKey(t *testing.T) {
	t.Parallel()
	own, shared := compile(t, rule.Spec{ID: "r", Rate: "1/s"}), compile(t, rule.Spec{ID: "r", Rate: "1/s", Shared: true})
	d := rule.Dimension("x")
	for _, tc := range []struct {
		bucket rule.Bucket
		want   string
	}{
		{rule.Bucket{Tenant: "acme", Rule: own}, "rl:{acme}t:r"},
		{rule.Bucket{Tenant: "acme", Rule: own, Dimension: d}, "rl:{acme}t:r/" + d},
		{rule.Bucket{Rule: shared}, "rl:{r}t"},
		{rule.Bucket{Rule: shared, Dimension: d}, "rl:{r/" + d + "}t"},
	} {
		got, err := tc.bucket.Name()
		assert.True(t, err == nil && got == tc.want, "%q, %v, want %q", got, err, tc.want)
		assert.False(t, tc.bucket.Dimension == "" && redisstore.HashTag(tc.want) != map[bool]string{true: "r", false: "acme"}[tc.bucket.Rule.Shared],
			"the tag of %s is %q", tc.want, redisstore.HashTag(tc.want))
	}
	for _, bad := range []rule.Bucket{{Tenant: "acme"}, {Rule: own}, {Tenant: "{acme}", Rule: own}, {Tenant: "acme", Rule: own, Dimension: "x"}, {Tenant: "acme", Rule: &rule.Rule{}}} {
		_, err := bad.Name()
		assert.Error(t, err, "%+v has a name", bad)
	}
}
