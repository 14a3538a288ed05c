package ratelimit

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
	"github.com/quotasvc/quotasvc/internal/ratelimit/rule"
)

// BenchmarkFullest searches 100,000 buckets of one rule among 1,000,000 buckets of other rules. It logs how long
// charges of other callers take during the search.
func BenchmarkFullest(b *testing.B) {
	const own, others, atOnce = 100_000, 1_000_000, 5_000
	server := testenv.RedisPrivate(b)
	l := limiterOn(b, productionClient(b, server.URL), settings{forgetful: true})
	client := patientClient(b, server.Options())
	r := compile(b, rule.Spec{ID: "searches", Rate: "1000/day", Burst: 1000})
	mustConsume(b, l, requestFor("t0", r, "", 1))
	value := client.Get(b.Context(), "rl:{t0}t:searches").Val()
	for i := 0; i < own+others; i += atOnce {
		pipe := client.Pipeline()
		for n := i; n < i+atOnce; n++ {
			name := "searches"
			if n >= own {
				name = fmt.Sprint("other", n%10)
			}
			pipe.Set(b.Context(), fmt.Sprintf("rl:{tenant-%d}t:%s", n, name), value, time.Hour)
		}
		testenv.Must(b).Get(pipe.Exec(b.Context()))
	}
	// checks measures how long charges take, until the function `end` returns true. It makes 1,000 charges a second,
	// one after another.
	checks := func(end func() bool) (p50, p99, most time.Duration) {
		var took []time.Duration
		next := time.Now()
		for n := 0; !end(); n++ {
			began := time.Now()
			mustConsume(b, l, requestFor(fmt.Sprint("c", n), r, "", 1))
			took = append(took, time.Since(began))
			next = next.Add(time.Millisecond)
			time.Sleep(time.Until(next))
		}
		slices.Sort(took)
		return took[len(took)/2], took[len(took)*99/100], took[len(took)-1]
	}
	until := time.Now().Add(3 * time.Second)
	p50, p99, most := checks(func() bool { return time.Now().After(until) })
	b.Logf("idle: p50 %s, p99 %s, at most %s", p50, p99, most)
	for b.Loop() {
		done := make(chan struct{})
		go func() {
			defer close(done)
			began := time.Now()
			top, complete, err := l.Fullest(context.Background(), search(r, false, 100))
			if err != nil || !complete || len(top) != 100 {
				b.Errorf("%d, %t, %v", len(top), complete, err)
			}
			b.Logf("search: %s", time.Since(began))
		}()
		p50, p99, most = checks(func() bool {
			select {
			case <-done:
				return true
			default:
				return false
			}
		})
		b.Logf("meanwhile: p50 %s, p99 %s, at most %s", p50, p99, most)
	}
}
