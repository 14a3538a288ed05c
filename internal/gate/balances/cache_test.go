package balances

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
	"github.com/quotasvc/quotasvc/internal/ledger"
	"github.com/quotasvc/quotasvc/internal/store/redisstore"
)

// startCache starts a cache on the Redis at url, like another instance of the service. If url is "", the cache is in
// local mode.
func startCache(t *testing.T, url string, cfg Config) *Cache {
	t.Helper()
	var store *redisstore.Store
	if url != "" {
		store = storeAt(t, url)
	}
	c := New(store, cfg)
	c.Start()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), testenv.Patience)
		defer cancel()
		_ = c.Stop(ctx) // a test of Stop has already called it
	})
	return c
}

// storeAt returns a store that is stopped and closed at the end of the test.
func storeAt(t *testing.T, url string) *redisstore.Store {
	t.Helper()
	store, err := redisstore.Open(url, redisstore.Config{})
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), testenv.Patience)
		defer cancel()
		_ = errors.Join(store.Stop(ctx), store.Close())
	})
	return store
}

// readOne reads Redis and returns the newest copy of the balance with this key. fromRedis is false if Redis was not
// read or did not answer.
func (c *Cache) readOne(t *testing.T, key ledger.BalanceKey) (got Cached, fromRedis bool) {
	t.Helper()
	texts := c.readTexts(t, c.Reads([]ledger.BalanceKey{key}, nil))
	return c.Lookup(nil, []ledger.BalanceKey{key}, texts)[0], texts != nil
}

// fresh reports whether a check of one unit without MaxStale uses the copy got.
func (c *Cache) fresh(got Cached) bool {
	return c.Policy().For([]Cached{got}, &Facts{Items: []ledger.Item{{Amount: 1}}, Now: time.Now()}) >= UseAndRefresh
}

// readTexts returns the values of reads from Redis. It returns nil if Redis does not answer or reads is nil.
func (c *Cache) readTexts(t *testing.T, reads *redisstore.Reads) []string {
	t.Helper()
	if reads == nil {
		return nil
	}
	c.Read(t.Context(), reads)
	return reads.Values
}

// seenSeq returns the seq of the newest copy that c finds. It returns -1 if Redis has no copy. It announces the
// balance, as a check does.
func (c *Cache) seenSeq(t *testing.T, key ledger.BalanceKey) int64 {
	texts := c.readTexts(t, c.Reads([]ledger.BalanceKey{key}, nil))
	if len(texts) == 0 || texts[0] == "" {
		return -1
	}
	return c.Lookup(nil, []ledger.BalanceKey{key}, texts)[0].Copy.Seq
}

// learns waits until c knows that some instance has announced the balance.
func (c *Cache) learns(t *testing.T, key ledger.BalanceKey) {
	t.Helper()
	testenv.Eventually(t, func() bool {
		c.interest.mu.Lock()
		defer c.interest.mu.Unlock()
		c.interest.news = true // as after a commit
		return c.interest.isWanted(idOf(key), time.Now())
	}, "the instance learns of the announcement")
}

// watch announces a balance as a check of c does. It waits until new copies of the balance are confirmed.
func (c *Cache) watch(t *testing.T, key ledger.BalanceKey) {
	t.Helper()
	c.Reads([]ledger.BalanceKey{key}, nil)
	testenv.Eventually(t, func() bool {
		c.interest.mu.Lock()
		defer c.interest.mu.Unlock()
		return c.interest.asked[idOf(key)].covers(time.Now().UnixMicro(), c.interest.since(time.Now()))
	}, "the balance is announced")
}

func TestPublish_ReachesOtherInstances(t *testing.T) {
	t.Parallel()
	url := testenv.RedisURL(t)
	a, b := startCache(t, url, Config{}), startCache(t, url, Config{})
	b.watch(t, keyOf(copyOf("acme", 0, time.Now())))
	want := *copyOf("acme", 7, time.Now().UTC().Truncate(time.Microsecond))
	a.Publish([]ledger.BalanceCopy{want})
	testenv.Eventually(t, func() bool { return b.seenSeq(t, keyOf(&want)) == 7 }, "the copy is seen")
	got, fromRedis := b.readOne(t, keyOf(&want))
	assert.True(t, *got.Copy == want && fromRedis && b.fresh(got),
		"got %+v, from redis %v; want %+v from redis, fresh", *got.Copy, fromRedis, want)
}

func TestPublish_OlderCopy_DoesNotReplaceNewer(t *testing.T) {
	t.Parallel()
	url := testenv.RedisURL(t)
	a, b := startCache(t, url, Config{}), startCache(t, url, Config{})
	now := time.Now()
	key := keyOf(copyOf("acme", 0, now))
	a.Publish([]ledger.BalanceCopy{*copyOf("acme", 10, now)})
	testenv.Eventually(t, func() bool { return b.seenSeq(t, key) == 10 }, "10 is seen")

	// Another instance publishes seq 9 after seq 10. Its Stop returns after Redis has answered.
	late := startCache(t, url, Config{})
	late.Publish([]ledger.BalanceCopy{*copyOf("acme", 9, now.Add(time.Second))})
	require.NoError(t, late.Stop(t.Context()))
	assert.EqualValues(t, 10, startCache(t, url, Config{}).seenSeq(t, key), "redis has seq")
}

func TestPublish_SendsTheNewestPerBalance(t *testing.T) {
	t.Parallel()
	url := testenv.RedisURL(t)
	c := New(storeAt(t, url), Config{}) // not started, so all copies wait
	now := time.Now()
	for seq := range int64(1000) {
		c.Publish([]ledger.BalanceCopy{*copyOf("hot", seq, now)})
	}
	require.Equal(t, 1, c.pending.len(), "copies wait")
	c.Start()
	require.NoError(t, c.Stop(t.Context()))
	assert.Equal(t, 1.0, testutil.ToFloat64(c.metrics.published), "copies were published")
	assert.EqualValues(t, 999, startCache(t, url, Config{}).seenSeq(t, keyOf(copyOf("hot", 0, now))), "redis has seq")
}

func TestPublish_ManyBalancesInOnePipeline(t *testing.T) {
	t.Parallel()
	url := testenv.RedisURL(t)
	const balances = 2*publishMax + 17
	a := New(storeAt(t, url), Config{}) // not started: it reads no announcements, and publishes every copy
	now := time.Now()
	keys := make([]ledger.BalanceKey, balances)
	for i := range balances {
		c := copyOf("t"+strconv.Itoa(i), int64(i), now)
		keys[i] = keyOf(c)
		a.Publish([]ledger.BalanceCopy{*c})
	}
	a.Start()
	require.NoError(t, a.Stop(t.Context()))
	b := startCache(t, url, Config{})
	names := make([]string, len(keys))
	for i := range keys {
		names[i] = redisKey(keys[i])
	}
	texts, err := b.redis.store.ReadAll(t.Context(), names)
	require.NoError(t, err)
	got := b.Lookup(nil, keys, texts)
	for i, f := range got {
		require.True(t, f.Copy != nil && f.Copy.Seq == int64(i), "balance %d: got %+v, want seq %d from redis", i, f, i)
	}
}

func TestPublish_TTLEndsAtTheNextEvent(t *testing.T) {
	t.Parallel()
	opts := testenv.Redis(t)
	client := redis.NewClient(opts)
	defer func() { _ = client.Close() }()
	now := time.Now()
	store := redisstore.New(client, redisstore.Config{})
	defer func() { _ = store.Stop(context.Background()) }()
	c := New(store, Config{KeepFor: time.Hour})
	soonOver, farOff := copyOf("soon", 1, now), copyOf("far", 1, now)
	soonOver.ValidUntil, farOff.ValidUntil = now.Add(5*time.Minute), now.Add(100*24*time.Hour)
	c.Publish([]ledger.BalanceCopy{*soonOver, *farOff})
	c.Start()
	require.NoError(t, c.Stop(t.Context()))
	for key, want := range map[ledger.BalanceKey]time.Duration{keyOf(soonOver): 5 * time.Minute, keyOf(farOff): time.Hour} {
		got := client.PTTL(t.Context(), redisKey(key)).Val()
		assert.True(t, got <= want && got >= want-time.Minute, "%s lives for %s, want %s", redisKey(key), got, want)
	}
}

func TestCache_RedisKilledAndBack(t *testing.T) {
	t.Parallel()
	server := testenv.RedisPrivate(t)
	a, b := startCache(t, server.URL, Config{}), startCache(t, server.URL, Config{})
	now := time.Now()
	key := keyOf(copyOf("acme", 0, now))
	a.Publish([]ledger.BalanceCopy{*copyOf("acme", 1, now)})
	testenv.Eventually(t, func() bool { return b.seenSeq(t, key) == 1 }, "the first copy is seen")
	a.learns(t, key)

	server.Kill()
	a.Publish([]ledger.BalanceCopy{*copyOf("acme", 2, now)})
	got, fromRedis := a.readOne(t, key)
	assert.True(t, !got.Confirmed && !fromRedis && got.Copy != nil && got.Copy.Seq == 2,
		"without redis: got %+v, from redis %v; want the local seq 2, unconfirmed", got, fromRedis)
	assert.False(t, a.fresh(got), "a copy that may be older than another instance's is used as fresh")
	testenv.Eventually(t, func() bool {
		return testutil.ToFloat64(a.metrics.publishErrors) > 0 && a.pending.len() == 1
	}, "a flush fails, and the copy waits")

	server.Start() // without data
	testenv.Eventually(t, func() bool { return b.seenSeq(t, key) == 2 }, "the copy published during the outage is seen")
}

func TestStop_PublishesWaitingCopies(t *testing.T) {
	t.Parallel()
	url := testenv.RedisURL(t)
	a := New(storeAt(t, url), Config{}) // not started, so all copies wait
	now := time.Now()
	for i := range 100 {
		a.Publish([]ledger.BalanceCopy{*copyOf("t"+strconv.Itoa(i), int64(i)+1, now)})
	}
	a.Start()
	require.NoError(t, a.Stop(t.Context()))
	b := startCache(t, url, Config{})
	for i := range 100 {
		got := b.seenSeq(t, keyOf(copyOf("t"+strconv.Itoa(i), 0, now)))
		require.True(t, got == int64(i)+1, "balance %d: seq %d was published before the stop, want %d", i, got, i+1)
	}
	assert.NoError(t, a.Stop(t.Context()), "a second Stop")
}

func TestStop_RedisAway_ReturnsError(t *testing.T) {
	t.Parallel()
	server := testenv.RedisPrivate(t)
	c := startCache(t, server.URL, Config{})
	server.Kill()
	c.Publish([]ledger.BalanceCopy{*copyOf("acme", 1, time.Now())})
	assert.Error(t, c.Stop(t.Context()), "Stop returned no error, but the copy is not published")
}

func TestStop_BeforeStart_StartsNothing(t *testing.T) {
	t.Parallel()
	c := New(storeAt(t, testenv.RedisURL(t)), Config{})
	require.NoError(t, c.Stop(t.Context()))
	c.Start() // must start no goroutine: the leak check at the end would find it
}

func TestLookup_LocalMode_CopiesAreConfirmed(t *testing.T) {
	t.Parallel()
	c := startCache(t, "", Config{LocalMax: 2})
	now := time.Now()
	for i, tenant := range []string{"a", "b", "c"} {
		c.Publish([]ledger.BalanceCopy{*copyOf(tenant, int64(i)+1, now)})
	}
	got, fromRedis := c.readOne(t, keyOf(copyOf("c", 0, now)))
	assert.True(t, !fromRedis && c.fresh(got) && got.Copy.Seq == 3,
		"got %+v, from redis %v; want the local seq 3, fresh", got, fromRedis)
	got, _ = c.readOne(t, keyOf(copyOf("a", 0, now)))
	assert.Nil(t, got.Copy, "the least recently used copy was kept beyond the bound")
	c.Publish([]ledger.BalanceCopy{*copyOf("c", 2, now.Add(time.Minute))})
	got, _ = c.readOne(t, keyOf(copyOf("c", 0, now)))
	assert.EqualValues(t, 3, got.Copy.Seq, "an older copy replaced a newer one")
}

func TestPublish_RefusedCopy_IsNotSentAgain(t *testing.T) {
	t.Parallel()
	c := startCache(t, testenv.RedisURL(t), Config{})
	bad := copyOf("acme", 1, time.Now())
	bad.Seq = -1 // the script rejects this seq
	c.Publish([]ledger.BalanceCopy{*bad})
	testenv.Eventually(t, func() bool { return testutil.ToFloat64(c.metrics.refused) == 1 }, "the refused copy is counted")
	assert.Zero(t, c.pending.len(), "copies wait")
	assert.Zero(t, testutil.ToFloat64(c.metrics.publishErrors), "flushes failed")
}
