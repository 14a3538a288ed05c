package ratelimit

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quotasvc/quotasvc/internal/testenv"
	"github.com/quotasvc/quotasvc/lua"
)

// TestABucketTakesAtMost170Bytes of Redis, everything included: what its memory grows by for 100,000 of them, each charged
// half of its capacity. A key is 32 bytes of table entries, as many for its expiry, 21 of the tables, and the key and the
// value in size classes of 16 bytes.
func TestABucketTakesAtMost170Bytes(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("fills a Redis with 600,000 keys")
	}
	const (
		buckets   = 100_000
		atMost    = 170
		perTenant = 10 // subjects
	)
	server := testenv.RedisPrivate(t)
	client := patientClient(t, server.Options())
	if !strings.Contains(client.Info(context.Background(), "memory").Val(), "mem_allocator:jemalloc") {
		t.Skip("the size classes are jemalloc's")
	}
	script := NewScript("limits", lua.Limits, nil)
	for _, population := range []struct {
		spec    Spec
		subject bool
	}{
		{Spec{ID: "requests", Rate: "100/h"}, false},
		{Spec{ID: "requests", Rate: "60/h"}, true},
		{Spec{ID: "searches", Rate: "1000/h", Kind: "leaky_bucket"}, true},
		{Spec{ID: "requests", Rate: "1000/h", Kind: "fixed_window"}, true},
		{Spec{ID: "requests", Rate: "1000/h", Kind: "sliding_window"}, true},
		{Spec{ID: "logins", Rate: "2/h", Kind: "sliding_log"}, false},
	} {
		rule := compile(t, population.spec)
		name := fmt.Sprintf("%s %s, by subject: %v", rule.Kind, rule.Rate, population.subject)
		client.FlushDB(context.Background())
		before := usedMemory(t, client)
		var batch []query
		for i := range buckets {
			c := Charge{Rule: rule, Cost: max(1, rule.Burst/2)}
			tenant := i
			if population.subject {
				tenant, c.Dimension = i/perTenant, Dimension("subject", strconv.Itoa(i))
			}
			batch = append(batch, queryFor(t, fmt.Sprintf("tenant-%05d", tenant), c))
			if len(batch) == 8*MaxVector || i == buckets-1 {
				vs := vectors(batch, false, 0)
				calls := make([]Call, len(vs))
				for n, v := range vs {
					calls[n] = v.call(0)
				}
				for n, reply := range script.RunPipelined(context.Background(), client, calls) {
					if _, err := vs[n].read(batch, reply); err != nil {
						t.Fatal(err)
					}
				}
				batch = batch[:0]
			}
		}
		if n := client.DBSize(context.Background()).Val(); n != buckets {
			t.Errorf("%s: %d keys", name, n)
		}
		each := float64(usedMemory(t, client)-before) / float64(client.DBSize(context.Background()).Val())
		t.Logf("%-50s %.1f bytes", name, each)
		if about := float64(rule.Explain(time.Time{}, nil, population.subject, 1).KeyBytes); each > about+4 || each < about-17 { // buffers, one class less
			t.Errorf("%s: %.1f bytes each, explained as %.0f", name, each, about)
		}
		if each > atMost {
			t.Errorf("%s: %.1f bytes each, at most %d", name, each, atMost)
		}
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
