package ratelimit

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
	"github.com/quotasvc/quotasvc/internal/ratelimit/rule"
)

// keeper makes the key of a bucket expire by the test's clock instead of Redis's clock.
type keeper struct {
	client redis.UniversalClient // nil: the bucket is in the process
	clock  *testClock
	key    string
	value  string
	dies   int64 // us
}

// pass moves the test's clock by d, and deletes the key if it has expired by the new time.
func (k *keeper) pass(t *testing.T, d time.Duration) {
	t.Helper()
	if k.client != nil {
		value, err := k.client.Get(t.Context(), k.key).Result()
		if err == nil && value != k.value {
			lives := k.client.PTTL(t.Context(), k.key).Val() - testGrace
			k.value, k.dies = value, k.clock.us.Load()+lives.Microseconds()
		}
	}
	k.clock.advance(d)
	if k.client != nil && k.dies != 0 && k.clock.us.Load() >= k.dies {
		k.client.Del(t.Context(), k.key)
		k.value, k.dies = "", 0
	}
}

// onKeptTime runs test as onTestTime does, with a keeper for the only bucket of rule "rule".
func onKeptTime(t *testing.T, kind rule.Kind, test func(t *testing.T, l *Limiter, k *keeper)) {
	t.Helper()
	for _, where := range []string{"redis", "local"} {
		t.Run(kind.String()+"/"+where, func(t *testing.T) {
			t.Parallel()
			k := &keeper{clock: &testClock{}}
			k.clock.us.Store(worldStart - worldStart%86_400_000_000) // midnight
			if where == "redis" {
				k.client = patientClient(t, testenv.Redis(t))
			}
			name, err := rule.Bucket{Tenant: "acme", Rule: compile(t, rule.Spec{Kind: kind.String(), Rate: "1/s"})}.Name()
			require.NoError(t, err)
			k.key = name
			test(t, k.clock.limiter(t, k.client), k)
		})
	}
}

// TestRule_Tightened_GivesNothingAway: after a rule's rate is lowered, a client that sends requests all the time gets
// only the tokens of the new rate.
func TestRule_Tightened_GivesNothingAway(t *testing.T) {
	t.Parallel()
	for _, kind := range kinds() {
		onKeptTime(t, kind, func(t *testing.T, l *Limiter, k *keeper) {
			spec := rule.Spec{Kind: kind.String(), Rate: "100/10s"}
			tight := rule.Spec{Kind: kind.String(), Rate: "100/day"}
			if kind == rule.KindTokenBucket || kind == rule.KindLeakyBucket {
				spec.Burst, tight.Burst, tight.Rate = 100, 100, "1/min"
			}
			before, after := compile(t, spec), compile(t, tight)
			k.pass(t, time.Hour)
			require.EqualValues(t, 100, exhaust(t, l, requestOf(Charge{Rule: before})), "admitted before the change")
			got := 0
			for range 200 { // 50 s
				k.pass(t, 250*time.Millisecond)
				if mustConsume(t, l, requestOf(Charge{Rule: after})).Allowed {
					got++
				}
			}
			// A bucket also gets 2.5 tokens of the old rate, from the time before the first request after the change.
			// A window or log gets no tokens.
			want := map[bool]int{true: 2}[kind == rule.KindTokenBucket || kind == rule.KindLeakyBucket]
			assert.True(t, got <= want+1 && got >= want, "%d admitted in 50 s after the change, want %d", got, want)
		})
	}
}

// TestRule_Raised_CountsFromNowOn: until its first request under the new rate, a bucket is refilled at the old rate.
func TestRule_Raised_CountsFromNowOn(t *testing.T) {
	t.Parallel()
	for _, kind := range []rule.Kind{rule.KindTokenBucket, rule.KindLeakyBucket} {
		onKeptTime(t, kind, func(t *testing.T, l *Limiter, k *keeper) {
			slow := compile(t, rule.Spec{Kind: kind.String(), Rate: "40/day", Burst: 100})
			quick := compile(t, rule.Spec{Kind: kind.String(), Rate: "1000/h", Burst: 100})
			exhaust(t, l, requestOf(Charge{Rule: slow}))
			k.pass(t, 12*time.Hour)
			assert.EqualValues(t, 20, remaining(t, l, requestOf(Charge{Rule: quick})), "half a day at 40/day")
			k.pass(t, 36*time.Second)
			assert.EqualValues(t, 30, remaining(t, l, requestOf(Charge{Rule: quick})), "36 s later at 1000/h")
			// The second change is also from slow to quick. 9000/min and 3000/min have the same units per token, and
			// differ only in the units per µs.
			quick, slow = compile(t, rule.Spec{Kind: kind.String(), Rate: "9000/min", Burst: 6000}), compile(t, rule.Spec{Kind: kind.String(), Rate: "3000/min", Burst: 6000})
			k.pass(t, time.Hour)
			exhaust(t, l, requestOf(Charge{Rule: slow, Cost: 100}))
			k.pass(t, 20*time.Second)
			assert.EqualValues(t, 1000, remaining(t, l, requestOf(Charge{Rule: quick})), "20 s at 3000/min")
			k.pass(t, 20*time.Second)
			assert.EqualValues(t, 4000, remaining(t, l, requestOf(Charge{Rule: slow})), "20 s more at 9000/min")
		})
	}
}
