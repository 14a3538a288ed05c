package ratelimit

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
	"github.com/quotasvc/quotasvc/internal/ratelimit/rule"
	"github.com/quotasvc/quotasvc/internal/store/redisstore"
	"github.com/quotasvc/quotasvc/lua"
)

// memoryTenants is the number of buckets that the memory tests fill a Redis with.
func memoryTenants(t *testing.T, short int) int {
	t.Helper()
	text := os.Getenv("QUOTASVC_REDIS_MEMORY_TENANTS")
	if text == "" {
		return short
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1000 || n > 100_000_000 {
		t.Fatalf("QUOTASVC_REDIS_MEMORY_TENANTS is %q, not from 1000 to 100000000", text)
	}
	return n
}

// emptyRedis returns a private Redis that has everything but buckets.
func emptyRedis(t *testing.T) *redis.Client {
	t.Helper()
	client := patientClient(t, testenv.RedisPrivate(t).Options())
	if !strings.Contains(client.Info(context.Background(), "memory").Val(), "mem_allocator:jemalloc") {
		t.Skip("the size classes are jemalloc's")
	}
	fill(t, client, compile(t, rule.Spec{Rate: "1/h"}), true, 1000) // what connections and scripts take is there from here on
	return client
}

// measure fills an empty Redis with n keys and waits until bound accepts the bytes of each: Redis moves a table that has grown little by
// little, and has both until then.
func measure(t *testing.T, client *redis.Client, name string, n int, fill func(), bound func(each float64) bool) {
	t.Helper()
	ctx := context.Background()
	client.FlushDB(ctx)
	before, began := usedMemory(t, client), time.Now()
	fill()
	took := time.Since(began)
	if got := client.DBSize(ctx).Val(); got != int64(n) {
		t.Errorf("%s: %d keys, want %d", name, got, n)
	}
	each := 0.0
	defer func() { t.Logf("%s: %.1f bytes each", name, each) }()
	testenv.Eventually(t, func() bool {
		each = float64(usedMemory(t, client)-before) / float64(n)
		return bound(each)
	}, name, ": the bytes of each are as explained")
	encoding := client.ObjectEncoding(ctx, client.RandomKey(ctx).Val()).Val()
	t.Logf("| %-40s | %8d | %5.1f bytes | %-8s | %7.1f s | %8.0f/s |", name, n, each, encoding, took.Seconds(), float64(n)/took.Seconds())
}

// TestBucket_TakesAtMost170Bytes of Redis, everything included: what its memory grows by for 25,000 of them, each charged
// half of its capacity. A key is 32 bytes of table entries, as many for its expiry, 21 of the tables, and the key and the
// value in size classes of 16 bytes. It does not run in parallel: it would keep the tests busy that measure time.
func TestBucket_TakesAtMost170Bytes(t *testing.T) {
	if testing.Short() {
		t.Skip("fills a Redis with 125,000 keys")
	}
	const atMost = 170
	buckets, client := memoryTenants(t, 25_000), emptyRedis(t)
	for _, population := range []struct {
		spec    rule.Spec
		subject bool
	}{
		{rule.Spec{ID: "requests", Rate: "100/h"}, false},
		{rule.Spec{ID: "requests", Rate: "1000/h"}, true}, // a leaky bucket is the same
		{rule.Spec{ID: "requests", Rate: "1000/h", Kind: "fixed_window"}, true},
		{rule.Spec{ID: "requests", Rate: "1000/h", Kind: "sliding_window"}, true},
		{rule.Spec{ID: "logins", Rate: "2/h", Kind: "sliding_log"}, false},
	} {
		r := compile(t, population.spec)
		name := fmt.Sprintf("%s %s, by subject: %v", r.Kind, r.Rate, population.subject)
		about := float64(r.Explain(time.Time{}, nil, population.subject, 1, 1).KeyBytes)
		measure(t, client, fmt.Sprintf("%s, explained as %.0f bytes", name, about), buckets, func() { fill(t, client, r, population.subject, buckets) }, func(each float64) bool {
			return each <= min(about+4, atMost) && each >= about-17 // one class less at most, and a few bytes for buffers
		})
	}
}

// TestLeases_InRedis_BytesOfEach: a bucket of leases is a listpack while it is small. Each further lease adds little.
func TestLeases_InRedis_BytesOfEach(t *testing.T) {
	if testing.Short() {
		t.Skip("fills a Redis with 5,000 keys")
	}
	buckets, client := memoryTenants(t, 2_500), emptyRedis(t)
	script := storeOn(t, client, settings{}).NewScript("leases", lua.Leases)
	r := compile(t, rule.Spec{ID: "jobs", Kind: "concurrency", Burst: 100})
	for _, population := range []struct {
		leases int
		atMost float64
	}{{1, 256}, {10, 640}} {
		measure(t, client, fmt.Sprintf("concurrency, %d leases held", population.leases), buckets, func() {
			for i := range population.leases {
				holdLeases(t, script, r, buckets, i)
			}
		}, func(each float64) bool { return each <= population.atMost && each >= 100 })
	}
}

// holdLeases takes one lease in each of n tenants' buckets.
func holdLeases(t *testing.T, script *redisstore.Script, r *rule.Rule, n, nth int) {
	t.Helper()
	var calls []redisstore.Call
	for i := range n {
		key, _ := r.BucketKey(memoryTenant(i), "")
		args := []any{int64(leaseAcquire), 0, r.Burst, time.Hour.Microseconds(), fmt.Sprintf("%011d%011d", nth, i), 0}
		if calls = append(calls, redisstore.Call{Keys: []string{key}, Args: args}); len(calls) < 500 && i < n-1 {
			continue
		}
		for _, reply := range script.Run(context.Background(), calls...) {
			if reply.Err != nil || leaseCode(reply.Ints[2]) != leaseDone {
				t.Fatal(reply)
			}
		}
		calls = calls[:0]
	}
}

// memoryTenant is a tenant with an id of usual length, 12 bytes.
func memoryTenant(i int) string { return fmt.Sprintf("t-%010d", i) }

// fill charges n buckets: each another tenant's, or ten subjects of each.
func fill(t *testing.T, client redis.UniversalClient, r *rule.Rule, subjects bool, n int) {
	t.Helper()
	script := limitsScript(t, client)
	var batch []query
	for i := range n {
		c, tenant := Charge{Rule: r, Cost: max(1, r.Burst/2)}, i
		if subjects {
			tenant, c.Dimension = i/10, rule.Dimension("subject", strconv.Itoa(i))
		}
		batch = append(batch, queryFor(t, memoryTenant(tenant), c))
		if len(batch) < 8*MaxVector && i < n-1 {
			continue
		}
		vs := vectors(batch, false, 0)
		calls := make([]redisstore.Call, len(vs))
		for j, v := range vs {
			calls[j] = v.call(0)
		}
		for j, reply := range script.Run(context.Background(), calls...) {
			if _, err := answersOf(vs[j], batch, reply); err != nil {
				t.Fatal(err)
			}
		}
		batch = batch[:0]
	}
}

func usedMemory(t *testing.T, client *redis.Client) int64 {
	t.Helper()
	figures := map[string]int64{"used_memory": -1, "mem_clients_normal": -1}
	for line := range strings.SplitSeq(client.Info(context.Background(), "memory").Val(), "\r\n") {
		name, value, _ := strings.Cut(line, ":")
		if _, wanted := figures[name]; !wanted {
			continue
		}
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		figures[name] = n
	}
	if figures["used_memory"] < 0 || figures["mem_clients_normal"] < 0 {
		t.Fatalf("the figures are %v", figures)
	}
	return figures["used_memory"] - figures["mem_clients_normal"] // connections come and go
}
