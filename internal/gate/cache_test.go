package gate

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/redis/go-redis/v9"

	"github.com/quotasvc/quotasvc/internal/ledger"
	"github.com/quotasvc/quotasvc/internal/ratelimit"
	"github.com/quotasvc/quotasvc/internal/testenv"
)

// soon bounds the wait for what happens in the background.
const soon = 10 * time.Second

// startCache starts a cache of its own on the Redis at url ("" = local mode), as one instance of the service would.
func startCache(t *testing.T, url string, cfg CacheConfig) *BalanceCache {
	t.Helper()
	var client redis.UniversalClient
	if url != "" {
		var err error
		if client, err = ratelimit.NewClient(url); err != nil {
			t.Fatal(err)
		}
	}
	c := NewBalanceCache(client, cfg)
	c.Start()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), soon)
		defer cancel()
		_ = c.Stop(ctx) // tests that care call it themselves
		if client != nil {
			_ = client.Close()
		}
	})
	return c
}

// one is what an instance with this cache would know of key, having asked Redis.
func (c *BalanceCache) one(t *testing.T, key balanceKey) (found, Source) {
	t.Helper()
	got, source := c.recall(nil, []balanceKey{key}, c.texts(t, c.stored([]balanceKey{key}, nil)))
	return got[0], source
}

// texts are what Redis holds under names; nil if it does not answer, or if there is none.
func (c *BalanceCache) texts(t *testing.T, names []string) []string {
	t.Helper()
	if names == nil {
		return nil
	}
	values, err := c.redis.client.MGet(t.Context(), names...).Result()
	if err != nil {
		return nil
	}
	texts := make([]string, len(values))
	for i := range values {
		texts[i], _ = values[i].(string)
	}
	return texts
}

// eventually polls until done says so.
func eventually(t testing.TB, what string, done func() bool) {
	t.Helper()
	deadline := time.NewTimer(soon)
	defer deadline.Stop()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-tick.C:
		case <-deadline.C:
			t.Fatalf("not within %s: %s", soon, what)
		}
	}
}

// seenSeq is the seq another instance reads, -1 for none.
func (c *BalanceCache) seenSeq(t *testing.T, key balanceKey) int64 {
	got, _ := c.one(t, key)
	if got.copy == nil || !got.shared {
		return -1
	}
	return got.copy.Seq
}

func TestPublish_ReachesOtherInstances(t *testing.T) {
	t.Parallel()
	url := testenv.RedisURL(t)
	a, b := startCache(t, url, CacheConfig{}), startCache(t, url, CacheConfig{})
	want := *copyOf("acme", 7, time.Now().UTC().Truncate(time.Microsecond))
	a.Publish([]ledger.BalanceCopy{want})
	eventually(t, "the copy is seen", func() bool { return b.seenSeq(t, keyOf(&want)) == 7 })
	got, source := b.one(t, keyOf(&want))
	if *got.copy != want || source != SourceCache || !b.fresh(got, nil, time.Now()) {
		t.Errorf("got %+v from %s, want %+v from the cache, fresh", *got.copy, source, want)
	}
}

func TestPublish_AnOlderCopyNeverReplacesANewerOne(t *testing.T) {
	t.Parallel()
	url := testenv.RedisURL(t)
	a, b := startCache(t, url, CacheConfig{}), startCache(t, url, CacheConfig{})
	now := time.Now()
	key := keyOf(copyOf("acme", 0, now))
	a.Publish([]ledger.BalanceCopy{*copyOf("acme", 10, now)})
	eventually(t, "10 is seen", func() bool { return b.seenSeq(t, key) == 10 })

	// Another instance is late: it publishes 9 after 10. A marker published behind it tells when it has arrived.
	late := startCache(t, url, CacheConfig{})
	late.Publish([]ledger.BalanceCopy{*copyOf("acme", 9, now.Add(time.Second))})
	if err := late.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if fresh := startCache(t, url, CacheConfig{}); fresh.seenSeq(t, key) != 10 {
		t.Errorf("redis has seq %d, want 10", fresh.seenSeq(t, key))
	}
}

func TestPublish_CoalescesToTheNewestPerBalance(t *testing.T) {
	t.Parallel()
	url := testenv.RedisURL(t)
	client, err := ratelimit.NewClient(url)
	if err != nil {
		t.Fatal(err)
	}
	c := NewBalanceCache(client, CacheConfig{}) // not started: everything waits
	defer func() { _ = client.Close() }()
	now := time.Now()
	for seq := range int64(1000) {
		c.Publish([]ledger.BalanceCopy{*copyOf("hot", seq, now)})
	}
	if got := c.pending.len(); got != 1 {
		t.Fatalf("%d copies wait, want 1", got)
	}
	c.Start()
	if err := c.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := testutil.ToFloat64(c.metrics.published); got != 1 {
		t.Errorf("%v copies were published, want 1", got)
	}
	if got := startCache(t, url, CacheConfig{}).seenSeq(t, keyOf(copyOf("hot", 0, now))); got != 999 {
		t.Errorf("redis has seq %d, want 999", got)
	}
}

func TestPublish_ManyBalancesInOnePipeline(t *testing.T) {
	t.Parallel()
	url := testenv.RedisURL(t)
	const balances = 2*publishMax + 17
	a := startCache(t, url, CacheConfig{})
	now := time.Now()
	keys := make([]balanceKey, balances)
	for i := range balances {
		c := copyOf("t"+strconv.Itoa(i), int64(i), now)
		keys[i] = keyOf(c)
		a.Publish([]ledger.BalanceCopy{*c})
	}
	if err := a.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	b := startCache(t, url, CacheConfig{})
	got, _ := b.recall(nil, keys, b.texts(t, b.stored(keys, nil)))
	for i, f := range got {
		if !f.shared || f.copy.Seq != int64(i) {
			t.Fatalf("balance %d: got %+v, want seq %d from redis", i, f, i)
		}
	}
}

func TestPublish_TheCopyDiesAtTheNextEvent(t *testing.T) {
	t.Parallel()
	opts := testenv.Redis(t)
	client := redis.NewClient(opts)
	defer func() { _ = client.Close() }()
	now := time.Now()
	c := NewBalanceCache(client, CacheConfig{KeepFor: time.Hour})
	soonOver, farOff := copyOf("soon", 1, now), copyOf("far", 1, now)
	soonOver.ValidUntil, farOff.ValidUntil = now.Add(5*time.Minute), now.Add(100*24*time.Hour)
	c.Publish([]ledger.BalanceCopy{*soonOver, *farOff})
	c.Start()
	if err := c.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	for key, want := range map[balanceKey]time.Duration{keyOf(soonOver): 5 * time.Minute, keyOf(farOff): time.Hour} {
		if got := client.PTTL(t.Context(), key.redisKey()).Val(); got > want || got < want-time.Minute {
			t.Errorf("%s lives for %s, want %s", key.redisKey(), got, want)
		}
	}
}

func TestFresh(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_700_000_000, 0)
	c := NewBalanceCache(nil, CacheConfig{FreshFor: 30 * time.Second})
	stale := func(d time.Duration) *time.Duration { return &d }
	aged := func(age time.Duration, shared bool) found {
		return found{copy: copyOf("t", 1, now.Add(-age)), shared: shared}
	}
	over := aged(time.Second, true)
	over.copy.ValidUntil = now
	for name, tc := range map[string]struct {
		found    found
		maxStale *time.Duration
		want     bool
	}{
		"no copy":                           {found{shared: true}, nil, false},
		"shared at the bound":               {aged(30*time.Second, true), nil, true},
		"shared beyond the bound":           {aged(30*time.Second+1, true), nil, false},
		"not shared":                        {aged(0, false), nil, false},
		"an event was due":                  {over, nil, false},
		"an event was due, whatever I said": {over, stale(time.Hour), false},
		"within what the caller tolerates":  {aged(time.Minute, false), stale(time.Minute), true},
		"beyond what the caller tolerates":  {aged(2*time.Millisecond, true), stale(time.Millisecond), false},
		"the caller tolerates nothing":      {aged(-time.Second, true), stale(0), false},
	} {
		if got := c.fresh(tc.found, tc.maxStale, now); got != tc.want {
			t.Errorf("%s: fresh = %v, want %v", name, got, tc.want)
		}
	}
}

// TestAging_SpreadsWhatWasReadTogether: copies of one moment are due at moments all over the last part of their time.
func TestAging_SpreadsWhatWasReadTogether(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_700_000_000, 0)
	c := NewBalanceCache(nil, CacheConfig{FreshFor: 30 * time.Second})
	const copies = 1000
	due := func(age time.Duration) (n int) {
		for i := range copies {
			f := found{copy: copyOf("t", 1, now.Add(-age+time.Duration(i)*time.Microsecond))}
			if c.aging(f, now) {
				n++
			}
		}
		return n
	}
	for age, want := range map[time.Duration]int{
		22500 * time.Millisecond: 0, 24 * time.Second: copies / 4, 25500 * time.Millisecond: copies / 2, 27 * time.Second: copies * 3 / 4,
		28501 * time.Millisecond: copies,
	} {
		if n := due(age); n < want-50 || n > want+50 {
			t.Errorf("after %s %d of %d are due, want about %d", age, n, copies, want)
		}
	}
	if f := (found{copy: copyOf("t", 1, now.Add(time.Second))}); c.aging(f, now) {
		t.Error("a copy by a clock that is ahead is due")
	}
}

func TestCache_RedisKilledAndBack(t *testing.T) {
	t.Parallel()
	server := testenv.RedisPrivate(t)
	a, b := startCache(t, server.URL, CacheConfig{}), startCache(t, server.URL, CacheConfig{})
	now := time.Now()
	key := keyOf(copyOf("acme", 0, now))
	a.Publish([]ledger.BalanceCopy{*copyOf("acme", 1, now)})
	eventually(t, "the first copy is seen", func() bool { return b.seenSeq(t, key) == 1 })

	server.Kill()
	a.Publish([]ledger.BalanceCopy{*copyOf("acme", 2, now)})
	got, source := a.one(t, key)
	if got.shared || source != SourceLocal || got.copy == nil || got.copy.Seq != 2 {
		t.Errorf("without redis: got %+v from %s, want our own seq 2, not shared", got, source)
	}
	if a.fresh(got, nil, time.Now()) {
		t.Error("a copy that may be behind other instances answers as fresh")
	}
	eventually(t, "a failed flush is noticed", func() bool { return testutil.ToFloat64(a.metrics.publishErrors) > 0 })
	if a.pending.len() != 1 {
		t.Fatalf("%d copies wait for redis, want 1", a.pending.len())
	}

	server.Start() // empty
	eventually(t, "what was committed meanwhile is seen", func() bool { return b.seenSeq(t, key) == 2 })
}

func TestStop_PublishesWhatWaits(t *testing.T) {
	t.Parallel()
	url := testenv.RedisURL(t)
	a := startCache(t, url, CacheConfig{})
	now := time.Now()
	for i := range 100 {
		a.Publish([]ledger.BalanceCopy{*copyOf("t"+strconv.Itoa(i), int64(i)+1, now)})
	}
	if err := a.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	b := startCache(t, url, CacheConfig{})
	for i := range 100 {
		if got := b.seenSeq(t, keyOf(copyOf("t"+strconv.Itoa(i), 0, now))); got != int64(i)+1 {
			t.Fatalf("balance %d: seq %d was published before the stop, want %d", i, got, i+1)
		}
	}
	if err := a.Stop(t.Context()); err != nil {
		t.Errorf("a second Stop: %v", err)
	}
}

func TestStop_SaysWhenCopiesAreLost(t *testing.T) {
	t.Parallel()
	server := testenv.RedisPrivate(t)
	c := startCache(t, server.URL, CacheConfig{})
	server.Kill()
	c.Publish([]ledger.BalanceCopy{*copyOf("acme", 1, time.Now())})
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if err := c.Stop(ctx); err == nil {
		t.Error("Stop says that all was published")
	}
}

func TestStop_BeforeStart(t *testing.T) {
	t.Parallel()
	c := NewBalanceCache(redis.NewClient(testenv.Redis(t)), CacheConfig{})
	defer func() { _ = c.redis.client.Close() }()
	if err := c.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.Start() // must start nothing: the leak check at the end would find it
}

func TestLocalMode_IsSharedByDefinition(t *testing.T) {
	t.Parallel()
	c := startCache(t, "", CacheConfig{KnownMax: 2})
	now := time.Now()
	for i, tenant := range []string{"a", "b", "c"} {
		c.Publish([]ledger.BalanceCopy{*copyOf(tenant, int64(i)+1, now)})
	}
	got, source := c.one(t, keyOf(copyOf("c", 0, now)))
	if source != SourceLocal || !c.fresh(got, nil, time.Now()) || got.copy.Seq != 3 {
		t.Errorf("got %+v from %s, want seq 3, fresh, local", got, source)
	}
	if got, _ := c.one(t, keyOf(copyOf("a", 0, now))); got.copy != nil {
		t.Error("the least recently used copy was kept beyond the bound")
	}
	c.Publish([]ledger.BalanceCopy{*copyOf("c", 2, now.Add(time.Minute))})
	if got, _ := c.one(t, keyOf(copyOf("c", 0, now))); got.copy.Seq != 3 {
		t.Error("an older copy replaced a newer one")
	}
}

func TestRedisCopies_ARefusedCopyIsNotTriedAgain(t *testing.T) {
	t.Parallel()
	c := startCache(t, testenv.RedisURL(t), CacheConfig{})
	bad := copyOf("acme", 1, time.Now())
	bad.Seq = -1 // no balance has it; the script says no
	c.Publish([]ledger.BalanceCopy{*bad})
	eventually(t, "the refusal is counted", func() bool { return testutil.ToFloat64(c.metrics.refused) == 1 })
	if failed := testutil.ToFloat64(c.metrics.publishErrors); c.pending.len() != 0 || failed != 0 {
		t.Errorf("%d copies wait, %v flushes failed; want 0 and 0", c.pending.len(), failed)
	}
}
