package ratelimit

import (
	"fmt"
	"math/big"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/quotasvc/quotasvc/internal/kit/bound"
	"github.com/quotasvc/quotasvc/internal/ratelimit/replica"
	"github.com/quotasvc/quotasvc/internal/ratelimit/rule"
	"github.com/quotasvc/quotasvc/internal/ratelimit/rule/oracle"
)

func TestLocalState_StaysBounded(t *testing.T) {
	t.Parallel()
	clock := time.UnixMicro(worldStart)
	metrics := NewMetrics(nil)
	l := patientLimiter(t, nil, settings{MaxLocalLevels: 10 * localStripes, Metrics: metrics, Now: func() time.Time { return clock }})
	r := compile(t, rule.Spec{Rate: "1/min", Burst: 5})
	held := func() int {
		n := 0
		for i := range l.local.stripes {
			n += len(l.local.stripes[i].all)
			require.True(t, len(l.local.stripes[i].all) <= 10,
				"shard %d holds %d levels, at most 10", i, len(l.local.stripes[i].all))
		}
		got := int(testutil.ToFloat64(metrics.localLevels))
		require.True(t, got == n, "the metric says %d levels, there are %d", got, n)
		return n
	}
	for i := range 5000 {
		mustConsume(t, l, Request{Tenant: fmt.Sprintf("t%d", i), Charges: []Charge{{Rule: r}}})
	}
	n := held()
	assert.True(t, n >= 9*localStripes, "only %d levels are held", n)
	// An hour later all buckets are full again, so their levels need not be held. For each new level, two old levels
	// are dropped.
	clock = clock.Add(time.Hour)
	for i := range 10 * localStripes {
		mustConsume(t, l, Request{Tenant: fmt.Sprintf("u%d", i), Charges: []Charge{{Rule: r}}})
	}
	n = held()
	assert.True(t, n <= 11*localStripes, "%d levels are held", n)
}

func TestLocalState_Eviction_DropsTheFullest(t *testing.T) {
	t.Parallel()
	clock := time.UnixMicro(worldStart)
	l := patientLimiter(t, nil, settings{MaxLocalLevels: 2 * localStripes, Now: func() time.Time { return clock }})
	slow, quick := compile(t, rule.Spec{ID: "slow", Rate: "1/day", Burst: 5}), compile(t, rule.Spec{ID: "quick", Rate: "1/s", Burst: 5})
	emptiest := requestFor("acme", slow, rule.Dimension("hammerer"), 1)
	for range 5 {
		mustConsume(t, l, emptiest)
	}
	for i := range 100 { // all in one stripe, which has room for two levels
		mustConsume(t, l, requestFor("acme", quick, rule.Dimension(fmt.Sprint(i)), 1))
	}
	assert.Zero(t, remaining(t, l, emptiest), "left: the emptiest bucket was forgotten")
}

func TestLocalState_FullBucket_GivesRoomWithoutEviction(t *testing.T) {
	t.Parallel()
	clock := time.UnixMicro(worldStart)
	l := patientLimiter(t, nil, settings{MaxLocalLevels: 2 * localStripes, Now: func() time.Time { return clock }})
	slow, quick := compile(t, rule.Spec{ID: "slow", Rate: "1/day", Burst: 5}), compile(t, rule.Spec{ID: "quick", Rate: "1/ms", Burst: 5})
	kept := requestFor("acme", slow, rule.Dimension("a"), 1)
	mustConsume(t, l, kept)
	for i := range 50 {
		// This replaces the level of a full bucket.
		mustConsume(t, l, requestFor("acme", quick, rule.Dimension(fmt.Sprint(i)), 1))
		clock = clock.Add(time.Second)
		require.EqualValues(t, 4, remaining(t, l, kept), "forgotten at the insertion of %d", i)
	}
}

// TestLocalState_Outage_OwesOnlyWhatItKnows: in an outage a process owes Redis charges only of levels that it has. So
// MaxLocalLevels bounds both.
func TestLocalState_Outage_OwesOnlyWhatItKnows(t *testing.T) {
	t.Parallel()
	noCarrying := func(l *Limiter) { l.carrying.Store(true) } // the goroutine does not run, so the test needs no locks
	l := away(t, settings{MaxLocalLevels: 10 * localStripes}, noCarrying)
	r := compile(t, rule.Spec{Rate: "1/day", Burst: 5})
	for i := range 5000 {
		mustPass(t, l, requestFor(fmt.Sprint("t", i), r, "", 1))
	}
	owed := 0
	for i := range l.local.stripes {
		owed += len(l.local.stripes[i].owed)
		for key := range l.local.stripes[i].owed {
			_, known := l.local.stripes[i].all[key]
			require.True(t, known, "%s is owed, and its level is dropped", key)
		}
	}
	assert.NotZero(t, owed)
	assert.EqualValues(t, owed, l.local.owing.Load(), "the count of what is owed")
}

func TestLocalLevel_OfRedis_SameFractionOfAShare(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		r := drawRuleOf(t, "rule", rule.KindTokenBucket)
		of, in := r.Limit(), replica.Anonymous(rapid.IntRange(1, 8).Draw(t, "replicas")).LimitOf(r, "key")
		units := func(l rule.Limit) int64 { return l.Params(rule.Moment{})[2] }
		full := func(l rule.Limit) int64 { return l.Capacity() * units(l) }
		used := rapid.Int64Range(1, bound.MaxAmount).Draw(t, "used")
		e := localLevel{State: rule.State{At: worldStart, Used: used, Unit: units(of), Num: of.Params(rule.Moment{})[1]}, of: of}
		got := e.in(in)
		require.True(t, got.Unit == units(in) && got.Num == in.Params(rule.Moment{})[1] && got.At == worldStart, got)
		if of != in { // the tokens of a debt, beyond the capacity, are divided, too
			exact := new(big.Rat).Mul(big.NewRat(used, full(of)), oracle.Tokens(full(in)))
			require.True(t, got.Used == min(oracle.CeilRat(exact), bound.MaxAmount),
				"%d of %d becomes %d of %d", used, full(of), got.Used, full(in))
		}
	})
}

func TestMonotonicMicros_IgnoresTheWallClock(t *testing.T) {
	t.Parallel()
	start := time.Now()
	now := start
	micros := monotonicMicros(func() time.Time { return now })
	now = start.Add(time.Second).AddDate(0, 0, 0) // this keeps the monotonic reading
	got := micros() - start.UnixMicro()
	assert.True(t, got == 1_000_000, "a second is %d us", got)
}

// TestLocalState_Logs_CountByTheirSize: MaxLocalLevels bounds memory, so a sliding log with 1,000 tokens counts as 40
// additional levels.
func TestLocalState_Logs_CountByTheirSize(t *testing.T) {
	t.Parallel()
	clock := time.UnixMicro(worldStart)
	l := patientLimiter(t, nil, settings{MaxLocalLevels: 100 * localStripes, Now: func() time.Time { return clock }})
	log, bucket := compile(t, rule.Spec{ID: "log", Rate: "1000/day", Kind: "sliding_log"}), compile(t, rule.Spec{ID: "bucket", Rate: "5/day"})
	one := func(r *rule.Rule, subject int) Request {
		return Request{Tenant: "acme", Charges: []Charge{{Rule: r, Dimension: rule.Dimension(fmt.Sprint(subject)), Cost: r.Burst / 2}}}
	}
	places := func() (levels, tokens, places int) {
		shard := l.local.stripe("acme")
		for _, e := range shard.all {
			levels, tokens, places = levels+1, tokens+cap(e.Log), places+1+e.extra()
		}
		require.True(t, places <= 100+1000/logPlace && places == levels+shard.logs,
			"%d levels take %d places of 100, counted as %d", levels, places, levels+shard.logs)
		return levels, tokens, places
	}
	for i := range 200 {
		mustConsume(t, l, one(bucket, i))
		places()
	}
	for i := range 50 {
		mustConsume(t, l, one(log, i))
		mustConsume(t, l, one(log, i))
		places()
	}
	levels, tokens, _ := places()
	assert.True(t, tokens <= 100*logPlace && levels <= 20, "%d levels with %d tokens", levels, tokens)
	for i := range 300 {
		mustConsume(t, l, one(bucket, i))
		places()
	}
}
