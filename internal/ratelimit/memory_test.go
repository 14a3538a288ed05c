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
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
	"github.com/quotasvc/quotasvc/internal/ratelimit/rule"
	"github.com/quotasvc/quotasvc/internal/store/redisstore"
	"github.com/quotasvc/quotasvc/lua"
)

// memoryTenants returns the number of buckets with which the memory tests fill a Redis.
func memoryTenants(t *testing.T, short int) int {
	t.Helper()
	text := os.Getenv("QUOTASVC_REDIS_MEMORY_TENANTS")
	if text == "" {
		return short
	}
	n, err := strconv.Atoi(text)
	require.True(t, err == nil && n >= 1000 && n <= 100_000_000,
		"QUOTASVC_REDIS_MEMORY_TENANTS is %q, not from 1000 to 100000000", text)
	return n
}

// memoryRedis is a private Redis whose memory contains only the keys that the tests store.
type memoryRedis struct {
	*testenv.RedisServer
	t *testing.T
}

// emptyRedis returns a private Redis without buckets, whose scripts are loaded. Its slow log is off, because on a
// slow machine the log's entries would increase the measured memory. Its latency tracking is off, because it takes 40
// kB at the first use of each command.
func emptyRedis(t *testing.T) memoryRedis {
	t.Helper()
	r := memoryRedis{testenv.RedisPrivate(t), t}
	info := testenv.Must(t).Get(r.Info(context.Background(), "memory"))
	if !strings.Contains(info, "mem_allocator:jemalloc") {
		t.Skip("the size classes are jemalloc's")
	}
	r.connected("warm", func(t *testing.T, client *redis.Client) {
		for name, value := range map[string]string{"slowlog-log-slower-than": "-1", "latency-tracking": "no"} {
			require.NoError(t, client.ConfigSet(context.Background(), name, value).Err())
		}
		fill(t, client, compile(t, rule.Spec{Rate: "1/h"}), true, 1000)
	})
	return r
}

// connected runs the function `do` with a client whose connections are closed after the function returns, because
// connections take memory.
func (r memoryRedis) connected(step string, do func(t *testing.T, client *redis.Client)) {
	r.t.Run(step, func(t *testing.T) { do(t, patientClient(t, r.Options())) })
}

// measure empties Redis, fills it with n keys, and waits until the function `bound` accepts the bytes per key. It
// must wait because Redis copies a growing hash table in small steps, and keeps both tables until all is copied.
func (r memoryRedis) measure(name string, n int, fill func(t *testing.T, client *redis.Client), bound func(each float64) bool) {
	r.t.Helper()
	ctx := context.Background()
	r.connected("empty", func(_ *testing.T, client *redis.Client) { client.FlushDB(ctx) })
	before, began := r.usedMemory(), time.Now()
	r.connected("fill", fill)
	took := time.Since(began)
	encoding := ""
	r.connected("look", func(t *testing.T, client *redis.Client) {
		got := client.DBSize(ctx).Val()
		assert.True(t, got == int64(n), "%s: %d keys, want %d", name, got, n)
		encoding = client.ObjectEncoding(ctx, client.RandomKey(ctx).Val()).Val()
	})
	each := 0.0
	defer func() { r.t.Logf("%s: %.1f bytes each", name, each) }()
	testenv.Eventually(r.t, func() bool {
		each = float64(r.usedMemory()-before) / float64(n)
		return bound(each)
	}, name, ": the bytes of each are as explained")
	r.t.Logf("| %-40s | %8d | %5.1f bytes | %-8s | %7.1f s | %8.0f/s |", name, n, each, encoding, took.Seconds(), float64(n)/took.Seconds())
}

// TestBucket_TakesAtMost170Bytes measures the memory that Redis needs for 25,000 buckets. Each bucket is charged half
// of its capacity. A key takes 32 bytes of table entries, 32 bytes for its expiry, and 21 bytes of the tables. The key
// itself and the value are in size classes of 16 bytes. The test is not parallel, because it would disturb tests that
// measure time.
func TestBucket_TakesAtMost170Bytes(t *testing.T) {
	if testing.Short() {
		t.Skip("fills a Redis with 125,000 keys")
	}
	const atMost = 170
	buckets, server := memoryTenants(t, 25_000), emptyRedis(t)
	for _, population := range []struct {
		spec    rule.Spec
		subject bool
	}{
		{rule.Spec{ID: "requests", Rate: "100/h"}, false},
		{rule.Spec{ID: "requests", Rate: "1000/h"}, true}, // a leaky bucket takes the same memory
		{rule.Spec{ID: "requests", Rate: "1000/h", Kind: "fixed_window"}, true},
		{rule.Spec{ID: "requests", Rate: "1000/h", Kind: "sliding_window"}, true},
		{rule.Spec{ID: "logins", Rate: "2/h", Kind: "sliding_log"}, false},
	} {
		r := compile(t, population.spec)
		name := fmt.Sprintf("%s %s, by subject: %v", r.Kind, r.Rate, population.subject)
		about := float64(r.Explain(time.Time{}, nil, population.subject, 1, 1).KeyBytes)
		server.measure(fmt.Sprintf("%s, explained as %.0f bytes", name, about), buckets, func(t *testing.T, client *redis.Client) {
			fill(t, client, r, population.subject, buckets)
		}, func(each float64) bool {
			return each <= min(about+4, atMost) && each >= about-17 // one size class less, some buffers
		})
	}
}

// TestLeases_InRedis_BytesOfEach: Redis stores a small bucket of leases as a listpack, so each further lease takes
// few bytes.
func TestLeases_InRedis_BytesOfEach(t *testing.T) {
	if testing.Short() {
		t.Skip("fills a Redis with 5,000 keys")
	}
	buckets, server := memoryTenants(t, 2_500), emptyRedis(t)
	r := compile(t, rule.Spec{ID: "jobs", Kind: "concurrency", Burst: 100})
	for _, population := range []struct {
		leases int
		atMost float64
	}{{1, 256}, {10, 640}} {
		server.measure(fmt.Sprintf("concurrency, %d leases held", population.leases), buckets, func(t *testing.T, client *redis.Client) {
			script := storeOn(t, client, settings{}).NewScript("leases", lua.Leases)
			for i := range population.leases {
				holdLeases(t, script, r, buckets, i)
			}
		}, func(each float64) bool { return each <= population.atMost && each >= 100 })
	}
}

// holdLeases acquires one lease in the bucket of each of n tenants.
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
			require.True(t, reply.Err == nil && leaseCode(reply.Ints[2]) == leaseDone, reply)
		}
		calls = calls[:0]
	}
}

// memoryTenant returns the id of the tenant i. It has the usual length, 12 bytes.
func memoryTenant(i int) string { return fmt.Sprintf("t-%010d", i) }

// fill charges n buckets. Each tenant has one bucket or, if subjects is true, the buckets of ten subjects.
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
			testenv.Must(t).Get(answersOf(vs[j], batch, reply))
		}
		batch = batch[:0]
	}
}

// usedMemory waits until Redis reports no other connection, and returns the used memory. It must wait because Redis
// counts the memory of closed connections for up to a second.
func (r memoryRedis) usedMemory() int64 {
	r.t.Helper()
	figures := map[string]int64{"used_memory": -1, "connected_clients": -1}
	testenv.Eventually(r.t, func() bool {
		info := testenv.Must(r.t).Get(r.Info(context.Background(), "default"))
		for line := range strings.SplitSeq(info, "\r\n") {
			name, value, _ := strings.Cut(line, ":")
			if _, wanted := figures[name]; !wanted {
				continue
			}
			figures[name] = testenv.Must(r.t).Get(strconv.ParseInt(value, 10, 64))
		}
		return figures["connected_clients"] == 1
	}, "the other connections have ended")
	require.True(r.t, figures["used_memory"] > 0, "the figures are %v", figures)
	return figures["used_memory"]
}
