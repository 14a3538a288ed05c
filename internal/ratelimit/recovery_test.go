package ratelimit

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quotasvc/quotasvc/internal/ratelimit/rule"
	"github.com/quotasvc/quotasvc/internal/testenv"
)

// TestKilledRedisAt5000RequestsPerSecond: no request waits, and what is admitted stays within what Redis and the replicas'
// shares may admit together.
func TestKilledRedisAt5000RequestsPerSecond(t *testing.T) {
	t.Parallel()
	const replicas, callers, every = 2, 25, 10 * time.Millisecond // 2,500 requests/s each
	server := testenv.RedisPrivate(t)
	r := compile(t, rule.Spec{ID: "rule", Rate: "1000/s", Burst: 300})
	req := Request{Tenant: "acme", Charges: []Charge{{Rule: r}}}
	clock := &movableClock{}
	began := time.Now()
	var all []*stream
	for range replicas {
		l := limiterOn(t, productionClient(t, server.URL), Config{Replicas: func() *Replicas { return Unnamed(replicas) }, Now: clock.now})
		all = append(all, flow(t, l, req, callers, every))
	}
	decided := func(where func(*stream) int64) (n int64) {
		for _, s := range all {
			n += where(s)
		}
		return n
	}
	byRedis, byProcess := func(s *stream) int64 { return s.redis.Load() }, func(s *stream) int64 { return s.local.Load() }
	eventually(t, "redis decides", func() bool { return decided(byRedis) > 2000 })
	server.Kill()
	eventually(t, "the replicas decide", func() bool { return decided(byProcess) > 6000 })
	server.Start()
	before := decided(byRedis)
	clock.advance(breakerOpen)
	eventually(t, "redis decides again", func() bool { return decided(byRedis) > before+500 })
	over := time.Since(began) + breakerOpen
	var admitted, out float64
	for i, s := range all {
		s.end()
		s.checkTimes(fmt.Sprint("replica ", i))
		if p99 := s.percentile(0.99); p99 > 50*time.Millisecond+machineStalls*time.Duration(s.stall.Load()) {
			t.Errorf("replica %d: the 99th percentile is %s", i, p99)
		}
		admitted += float64(s.redisAdmitted.Load() + s.localAdmitted.Load())
		out = max(out, time.Duration(s.latestDegraded.Load()-s.firstDegraded.Load()).Seconds()+breakerOpen.Seconds())
	}
	// Redis starts anew: it was killed and keeps nothing, so it has its burst twice.
	most := 2*300 + over.Seconds()*1000 + 300 + out*1000 + 2*replicas
	t.Logf("%.0f admitted in %s, of which %.1f s without redis; at most %.0f may be", admitted, over, out, most)
	if admitted > most {
		t.Errorf("%.0f admitted, at most %.0f may be", admitted, most)
	}
}

// TestRecoveryIsNoStampede: while Redis is away each process asks it once every 5 s, and when it is back, through a few
// connections.
func TestRecoveryIsNoStampede(t *testing.T) {
	t.Parallel()
	const replicas, callers = 4, 24
	server := testenv.RedisPrivate(t)
	direct := patientClient(t, server.Options())
	proxy := newLossyProxy(t, server.Addr)
	address := (&url.URL{Scheme: "redis", User: url.UserPassword("", server.Options().Password), Host: proxy.addr}).String()
	clock := &movableClock{}
	r := compile(t, rule.Spec{ID: "rule", Rate: "1000000/s"})
	var all []*stream
	var limiters []*Limiter
	for range replicas {
		l := limiterOn(t, productionClient(t, address), Config{Now: clock.now})
		limiters = append(limiters, l)
		all = append(all, flow(t, l, Request{Tenant: "acme", Charges: []Charge{{Rule: r}}}, callers, 8*time.Millisecond))
	}
	eachOf := func(what string, is func(i int) bool) {
		t.Helper()
		eventually(t, what, func() bool {
			for i := range limiters {
				if !is(i) {
					return false
				}
			}
			return true
		})
	}
	eachOf("redis decides", func(i int) bool { return all[i].redis.Load() > 50 })
	proxy.lose.Store(true) // every call runs, and no reply arrives
	eachOf("the breakers open", func(i int) bool { return limiters[i].Degraded() && waits(limiters[i], clock.now()) })

	for range 3 {
		awaitQuiet(t, direct)
		local := make([]int64, replicas)
		for i, s := range all {
			local[i] = s.local.Load()
		}
		before := evalCalls(t, direct)
		clock.advance(breakerOpen)
		eachOf("the probe has failed and others go on", func(i int) bool {
			return all[i].local.Load() > local[i]+2*callers && waits(limiters[i], clock.now())
		})
		if probes := evalCalls(t, direct) - before; probes != replicas {
			t.Errorf("%d calls reached redis in five seconds, want one of each of the %d processes", probes, replicas)
		}
	}

	proxy.lose.Store(false)
	connections := received(t, direct)
	before := evalCalls(t, direct)
	redisBefore := make([]int64, replicas)
	for i, s := range all {
		redisBefore[i] = s.redis.Load()
	}
	clock.advance(breakerOpen)
	eachOf("redis decides again", func(i int) bool { return all[i].redis.Load() > redisBefore[i]+200 && !limiters[i].Degraded() })
	var requests int64
	for i, s := range all {
		s.end()
		s.checkTimes(fmt.Sprint("process ", i))
		requests += s.redis.Load() - redisBefore[i]
	}
	// The probes' connections, the lanes', and one of the machine's hiccups for each.
	if n := received(t, direct) - connections; n > replicas*(2*DefaultLanes+2) {
		t.Errorf("%d connections were made, want a few per process", n)
	}
	if n := evalCalls(t, direct) - before; int64(n) > requests+replicas {
		t.Errorf("%d script calls for %d requests", n, requests)
	}
}

// awaitQuiet waits until no call is on its way to a server any more.
func awaitQuiet(t *testing.T, client *redis.Client) {
	t.Helper()
	last := -1
	eventually(t, "no calls are under way", func() bool {
		n := evalCalls(t, client)
		still := n == last
		last = n
		time.Sleep(20 * time.Millisecond) // far more than a call takes on loopback
		return still
	})
}

// waits reports whether a limiter's breaker is between two probes.
func waits(l *Limiter, now time.Time) bool {
	b := l.shards.first.breaker
	b.mu.Lock()
	defer b.mu.Unlock()
	return !b.probing && now.Before(b.until)
}

// received is how many connections a server has accepted so far.
func received(t *testing.T, client *redis.Client) int {
	t.Helper()
	info, err := client.Info(context.Background(), "stats").Result()
	if err != nil {
		t.Fatal(err)
	}
	var n int
	for line := range strings.Lines(info) {
		if _, err := fmt.Sscanf(line, "total_connections_received:%d", &n); err == nil {
			return n
		}
	}
	t.Fatal("the server does not say")
	return 0
}

// TestCallsOfALostPipelineRunOnce: a pipeline whose replies are lost has run, each call once, on every kind of client.
func TestCallsOfALostPipelineRunOnce(t *testing.T) {
	t.Parallel()
	server := testenv.RedisPrivate(t)
	direct := patientClient(t, server.Options())
	proxy := newLossyProxy(t, server.Addr)
	opts := baseOptions()
	opts.Addrs, opts.Password = []string{proxy.addr}, server.Options().Password
	cluster := opts.Cluster()
	cluster.ClusterSlots = func(context.Context) ([]redis.ClusterSlot, error) {
		return []redis.ClusterSlot{{Start: 0, End: 16383, Nodes: []redis.ClusterNode{{Addr: proxy.addr}}}}, nil
	}
	s := NewScript("count", `return {redis.call('INCR', KEYS[1])}`, nil)
	if err := s.Load(t.Context(), direct); err != nil {
		t.Fatal(err)
	}
	proxy.lose.Store(true)
	for name, client := range map[string]redis.UniversalClient{
		"single": redis.NewClient(opts.Simple()), "cluster": redis.NewClusterClient(cluster),
	} {
		var calls []Call
		for i := range 20 {
			calls = append(calls, Call{Keys: []string{fmt.Sprint(name, i)}})
		}
		var all sync.WaitGroup
		all.Go(func() {
			for i, reply := range s.RunPipelined(t.Context(), client, calls) {
				if reply.Err == nil {
					t.Errorf("%s: call %d got a reply: %v", name, i, reply.Ints)
				}
			}
		})
		all.Wait()
		var counts []string
		for _, call := range calls {
			counts = append(counts, direct.Get(t.Context(), call.Keys[0]).Val())
		}
		if got := slices.Compact(slices.Clone(counts)); !slices.Equal(got, []string{"1"}) {
			t.Errorf("%s: the calls ran %v times", name, counts)
		}
		_ = client.Close()
	}
}
