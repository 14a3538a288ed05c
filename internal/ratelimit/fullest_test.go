package ratelimit

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
	"github.com/quotasvc/quotasvc/internal/ratelimit/rule"
)

// search returns a Search for the fullest buckets of r, at most `most` of them. r is in force for all tenants.
func search(r *rule.Rule, dimension bool, most int) Search {
	return Search{
		Layouts: []rule.Layout{r.Layout(dimension)}, Most: most,
		Rule: func(rule.Layout, BucketName) (*rule.Rule, *time.Location) { return r, nil },
	}
}

func mustFind(t testing.TB, l *Limiter, s Search) []BucketUse {
	t.Helper()
	top, complete, err := l.Fullest(t.Context(), s)
	require.True(t, err == nil && complete, "complete: %t, %v", complete, err)
	return top
}

// changedRates contains, for each kind, the rate before and after a change of the rule.
var changedRates = map[rule.Kind][2]string{
	rule.KindTokenBucket: {"9/min", "7/s"}, rule.KindLeakyBucket: {"11/min", "13/hour"}, rule.KindFixedWindow: {"50/min", "40/hour"},
	rule.KindSlidingWindow: {"50/min", "40/hour"}, rule.KindSlidingLog: {"50/min", "40/hour"},
}

// TestFullest_EveryKind_AgreesWithPeek: the search finds the same use of a bucket as a peek, also after the rule has
// changed.
func TestFullest_EveryKind_AgreesWithPeek(t *testing.T) {
	onTestTime(t, func(t *testing.T, l *Limiter, clock *testClock) {
		random := rand.New(rand.NewPCG(1, 2))
		for kind, rates := range changedRates {
			for _, shared := range []bool{false, true} {
				spec := rule.Spec{ID: fmt.Sprintf("%s-%t", kind, shared), Kind: kind.String(), Rate: rates[0], Shared: shared}
				if kind == rule.KindTokenBucket || kind == rule.KindLeakyBucket {
					spec.Burst = 50
				}
				before := compile(t, spec)
				spec.Rate = rates[1]
				after := compile(t, spec)
				names := make([]BucketName, 30)
				for i := range names {
					names[i] = BucketName{fmt.Sprint("t", i), rule.Dimension(fmt.Sprint(i))}
				}
				for range 100 {
					n := names[random.IntN(len(names))]
					mustConsume(t, l, requestFor(n.Tenant, before, n.Dimension, 1+random.Int64N(20)))
					clock.advance(time.Duration(random.IntN(2_000_000)) * time.Microsecond)
				}
				for _, r := range []*rule.Rule{before, after} {
					var want []BucketUse
					for _, n := range names {
						v := mustPeek(t, l, requestFor(n.Tenant, r, n.Dimension, 1)).Verdicts[0]
						if shared {
							n.Tenant = ""
						}
						if used := v.Limit - v.Remaining; used > 0 {
							want = append(want, BucketUse{n, used, v.Limit})
						}
					}
					slices.SortFunc(want, compareUse)
					got := mustFind(t, l, search(r, true, 100))
					for i := range got {
						got[i].Used = min(got[i].Used, got[i].Limit) // Remaining does not show use beyond the limit
					}
					slices.SortFunc(got, compareUse)
					assert.True(t, len(want) >= 5 && slices.Equal(got, want),
						"%s at %s: %v, want %v", spec.ID, r.Rate, got, want)
				}
			}
		}
	})
}

func TestFullest_Most_FullestFirst(t *testing.T) {
	onTestTime(t, func(t *testing.T, l *Limiter, clock *testClock) {
		small, large := compile(t, rule.Spec{ID: "r", Rate: "1/s", Burst: 10}), compile(t, rule.Spec{ID: "r", Rate: "1/s", Burst: 1000})
		of := func(n BucketName) *rule.Rule {
			if n.Tenant == "large" {
				return large
			}
			return small
		}
		for tenant, cost := range map[string]int64{"b": 5, "a": 5, "full": 10, "large": 500, "soon": 1, "c": 6} {
			mustConsume(t, l, Request{Tenant: tenant, Charges: []Charge{{Rule: of(BucketName{Tenant: tenant}), Cost: cost}}})
		}
		clock.advance(time.Second)
		s := search(small, false, 5)
		s.Rule = func(_ rule.Layout, n BucketName) (*rule.Rule, *time.Location) { return of(n), nil }
		name := func(tenant string) BucketName { return BucketName{Tenant: tenant} }
		want := []BucketUse{{name("full"), 9, 10}, {name("c"), 5, 10}, {name("large"), 499, 1000}, {name("a"), 4, 10}, {name("b"), 4, 10}}
		for most := 1; most <= 5; most++ {
			s.Most = most
			assert.Equal(t, want[:most], mustFind(t, l, s))
		}
		s.Most = 50
		got := mustFind(t, l, s)
		assert.Equal(t, want, got, "testenv.Patience is full again")
		s.Rule = func(rule.Layout, BucketName) (*rule.Rule, *time.Location) { return nil, nil }
		got = mustFind(t, l, s)
		assert.Empty(t, got, "%v of no rule", got)
	})
}

// The search finds only the buckets of its rule. It finds no buckets of other kinds or of rules with similar names,
// and no keys of other programs.
func TestFullest_OtherKeys_NotTaken(t *testing.T) {
	client := parallelClient(t)
	l := patientLimiter(t, client, settings{})
	dimension := rule.Dimension("x")
	charge := func(tenant, dimension string, specs ...rule.Spec) {
		for _, spec := range specs {
			spec.Rate = "10/day"
			mustConsume(t, l, requestFor(tenant, compile(t, spec), dimension, 0))
		}
	}
	for _, tenant := range []string{"a", "t:api", "api"} {
		charge(tenant, "", rule.Spec{ID: "api"}, rule.Spec{ID: "api2"}, rule.Spec{ID: "my-api"}, rule.Spec{ID: "a.i"}, rule.Spec{ID: "t:api"},
			rule.Spec{ID: "api", Kind: "fixed_window"})
		charge(tenant, dimension, rule.Spec{ID: "api"}, rule.Spec{ID: "api", Kind: "sliding_log"})
	}
	charge("a", "", rule.Spec{ID: "api", Shared: true})
	charge("a", dimension, rule.Spec{ID: "api", Shared: true})
	for _, key := range []string{"rl:{*}t:api", "rl:{a}t:api/", "rl:{a}t:api/*", "rl:{a}b}t:api", "rl:{}t:api", "rl:{a}t:api/0123456789abcde?", "rl:{x}t:api", "rl:{y}t:api"} {
		client.Set(t.Context(), key, "not a bucket at all", 0)
	}
	client.Del(t.Context(), "rl:{y}t:api")
	client.LPush(t.Context(), "rl:{y}t:api", "a list")
	for spec, want := range map[rule.Spec][2][]string{
		{ID: "api"}:                       {{"a", "api", "t:api"}, {"a", "api", "t:api"}},
		{ID: "a.i"}:                       {{"a", "api", "t:api"}, nil},
		{ID: "t:api"}:                     {{"a", "api", "t:api"}, nil},
		{ID: "api", Kind: "fixed_window"}: {{"a", "api", "t:api"}, nil},
		{ID: "api", Kind: "sliding_log"}:  {nil, {"a", "api", "t:api"}},
		{ID: "api", Kind: "leaky_bucket"}: {},
		{ID: "api", Shared: true}:         {{""}, {""}},
		{ID: "ap"}:                        {},
	} {
		spec.Rate = "10/day"
		for i, dimensions := range []bool{false, true} {
			var got []string
			for _, b := range mustFind(t, l, search(compile(t, spec), dimensions, 100)) {
				if got = append(got, b.Tenant); b.Used != 1 || b.Limit != 10 || (b.Dimension == dimension) != dimensions {
					t.Errorf("%+v: %+v", spec, b)
				}
			}
			assert.True(t, slices.Equal(got, want[i]), "%v, want %v", got, want[i])
		}
	}
	for _, id := range []string{"*", "a?i", "[a]pi", `a\pi`, "{api}", ""} {
		_, err := rule.Compile(rule.Spec{ID: id, Rate: "1/s"})
		assert.Error(t, err, "a rule can be named %q", id)
	}
}

func TestFullest_Leases_Counted(t *testing.T) {
	t.Parallel()
	for where, l := range map[string]*Limiter{"redis": patientLimiter(t, patientClient(t, testenv.Redis(t)), settings{}), "local": patientLimiter(t, nil, settings{})} {
		r := compile(t, rule.Spec{ID: "jobs", Kind: "concurrency", Burst: 3})
		for i := range 5 {
			mustAcquire(t, l, LeaseRequest{Tenant: "full", Rule: r, Key: fmt.Sprint(i)})
		}
		lease := mustAcquire(t, l, LeaseRequest{Tenant: "done", Rule: r, Key: "k"})
		mustAcquire(t, l, LeaseRequest{Tenant: "one", Rule: r, Key: "k"})
		mustRelease(t, l, lease.ID)
		want := []BucketUse{{BucketName{Tenant: "full"}, 3, 3}, {BucketName{Tenant: "one"}, 1, 3}}
		assert.Equal(t, want, mustFind(t, l, search(r, false, 10)), "%s", where)
	}
}

func TestFullest_Cluster_AllMastersAsked(t *testing.T) {
	t.Parallel()
	c := testenv.RedisClusterPrivate(t)
	l := patientLimiter(t, patientCluster(t, c), settings{})
	r := compile(t, rule.Spec{ID: "r", Rate: "1/day", Burst: 100})
	global := compile(t, rule.Spec{ID: "g", Rate: "1/day", Burst: 100, Shared: true})
	var want []BucketUse
	for i := range 30 {
		tenant := tenantOn(c, i%3, i/3)
		for _, other := range []rule.Spec{{ID: "r2", Rate: "1/day", Burst: 100}, {ID: "r", Kind: "sliding_log", Rate: "100/day"}} {
			mustConsume(t, l, requestFor(tenant, compile(t, other), "", 90))
		}
		mustConsume(t, l, requestFor(tenant, r, "", int64(90-i)))
		mustConsume(t, l, requestFor(tenant, global, rule.Dimension(tenant), 1))
		want = append(want, BucketUse{BucketName{Tenant: tenant}, int64(90 - i), 100})
	}
	assert.Equal(t, want, mustFind(t, l, search(r, false, 100)))
	assert.Equal(t, want[:7], mustFind(t, l, search(r, false, 7)))
	assert.Len(t, mustFind(t, l, search(global, true, 100)), 30, "buckets of the shared rule")
	slot := c.Slot("{" + want[0].Tenant + "}")
	c.BeginMove(slot, c.Masters[0], c.Masters[1])
	c.MoveKeys(slot, c.Masters[0], c.Masters[1])
	got, complete, err := l.Fullest(t.Context(), search(r, false, 100))
	require.True(t, err == nil && !complete, "while the keys of a bucket move: %t, %v", complete, err)
	assert.Equal(t, want[1:], got, "while the keys of a bucket move")
	c.EndMove(slot, c.Masters[1])
	assert.Equal(t, want, mustFind(t, l, search(r, false, 100)), "after the move")
	c.Replicas[0].Kill()
	c.Masters[0].Kill()
	_, _, err = l.Fullest(t.Context(), search(r, false, 7))
	assert.ErrorIs(t, err, ErrUnavailable, "without one of the masters")
}

func TestFullest_CutOffOrAway_Told(t *testing.T) {
	t.Parallel()
	server := testenv.RedisPrivate(t)
	l := patientLimiter(t, patientClient(t, server.Options()), settings{})
	r := compile(t, rule.Spec{ID: "r", Rate: "1/day", Burst: 10})
	for i := range 3000 {
		mustConsume(t, l, requestFor(fmt.Sprint("t", i), r, "", 1))
	}
	over, cancel := context.WithCancel(t.Context())
	s := search(r, false, 5)
	plain := s.Rule
	s.Rule = func(layout rule.Layout, n BucketName) (*rule.Rule, *time.Location) {
		cancel()
		return plain(layout, n)
	}
	top, complete, err := l.Fullest(over, s)
	assert.True(t, len(top) == 5 && !complete && err == nil, "a search cut off: %v, %t, %v", top, complete, err)
	mustFind(t, l, search(r, false, 5))
	server.Kill()
	_, _, err = l.Fullest(t.Context(), search(r, false, 5))
	assert.ErrorIs(t, err, ErrUnavailable, "without Redis")
}
