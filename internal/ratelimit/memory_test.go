package ratelimit

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quotasvc/quotasvc/internal/ratelimit/rule"
	"github.com/quotasvc/quotasvc/internal/redisstore"
	"github.com/quotasvc/quotasvc/internal/testenv"
)

// TestBucket_TakesAtMost170Bytes of Redis, everything included: what its memory grows by for 100,000 of them, each charged
// half of its capacity. A key is 32 bytes of table entries, as many for its expiry, 21 of the tables, and the key and the
// value in size classes of 16 bytes. It does not run in parallel: it would keep the tests busy that measure time.
func TestBucket_TakesAtMost170Bytes(t *testing.T) {
	if testing.Short() {
		t.Skip("fills a Redis with 500,000 keys")
	}
	const buckets, atMost = 100_000, 170
	client := patientClient(t, testenv.RedisPrivate(t).Options())
	if !strings.Contains(client.Info(context.Background(), "memory").Val(), "mem_allocator:jemalloc") {
		t.Skip("the size classes are jemalloc's")
	}
	fill(t, client, compile(t, rule.Spec{Rate: "1/h"}), true, 1000) // what connections and scripts take is there from here on
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
		client.FlushDB(context.Background())
		before := usedMemory(t, client)
		fill(t, client, r, population.subject, buckets)
		if n := client.DBSize(context.Background()).Val(); n != buckets {
			t.Errorf("%s: %d keys", name, n)
		}
		about, each := float64(r.Explain(time.Time{}, nil, population.subject, 1, 1).KeyBytes), 0.0
		explained := func() bool { // one class less at most, and a few bytes for buffers
			each = float64(usedMemory(t, client)-before) / buckets
			return each <= about+4 && each >= about-17
		}
		// Redis moves a table that has grown little by little, and has both until then.
		for deadline := time.Now().Add(patience / 4); !explained() && time.Now().Before(deadline); {
			time.Sleep(time.Millisecond)
		}
		t.Logf("%-50s %.1f bytes", name, each)
		if !explained() || each > atMost {
			t.Errorf("%s: %.1f bytes each, explained as %.0f and at most %d", name, each, about, atMost)
		}
	}
}

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
		batch = append(batch, queryFor(t, fmt.Sprintf("tenant-%05d", tenant), c))
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
	for line := range strings.SplitSeq(client.Info(context.Background(), "memory").Val(), "\r\n") {
		if value, ok := strings.CutPrefix(line, "used_memory:"); ok {
			n, err := strconv.ParseInt(value, 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
	}
	t.Fatal("no used_memory")
	return 0
}
