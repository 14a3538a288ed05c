package gate

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/catalog"
	"github.com/quotasvc/quotasvc/internal/lab/testenv"
	"github.com/quotasvc/quotasvc/internal/ledger"
)

// A caller that is refused while Redis hangs must wait for Redis only once.
func TestCheckBalances_AsksNoLimits_NoRedisThatIsAway(t *testing.T) {
	t.Parallel()
	in := newShared(t)
	in.catalogue(catalog.Limit{Rule: "twice", Per: []string{"tenant"}, Kind: "token_bucket", Rate: "2/day"})
	for _, key := range []string{"one", "two"} {
		in.consumes("", key, request(key, "calls", 1))
	}
	req := request("three", "calls", 1)
	refused, err := in.Consume(t.Context(), req)
	in.expectCode(CodeRateLimited, "three", err)
	decisions := func() float64 { return in.sum("quotasvc_limit_decisions_total", "twice") }
	before := decisions()
	testenv.Eventually(t, func() bool {
		got, err := in.CheckBalances(t.Context(), req, &refused)
		return err == nil && got.Source == SourceCache && got.Items[0].Remaining == 8
	}, "redis has the copy")
	refused.LimitsDegraded = true
	got, err := in.CheckBalances(t.Context(), req, &refused)
	assert.False(t, err == nil && got.Source == SourceCache, "redis was asked: %+v", got)
	assert.Equal(t, before, decisions(), "the limit decided more times")
}

// redisCalls returns the number of scripts and of reads of copies that a server has run.
func redisCalls(t *testing.T, server *redis.Client) (n int) {
	t.Helper()
	text, err := server.Info(t.Context(), "commandstats").Result()
	require.NoError(t, err)
	for _, command := range []string{"get", "mget", "evalsha", "fcall"} {
		if _, after, found := strings.Cut(text, "cmdstat_"+command+":calls="); found {
			calls, _, _ := strings.Cut(after, ",")
			m, _ := strconv.Atoi(calls)
			n += m
		}
	}
	return n
}

// A limit refuses many requests in a short time. Each answer has the balance, but only few answers need a request to
// Redis.
func TestCheckBalances_FloodOfRefusals_SparesRedis(t *testing.T) {
	t.Parallel()
	const flood = 500
	server := testenv.RedisPrivate(t)
	in := newInstance(t, testenv.Postgres(t), patientClient(server.Options()))
	in.catalogue(catalog.Limit{Rule: "once", Per: []string{"tenant"}, Kind: "token_bucket", Rate: "1/day"})
	in.consumes("", "the first", request("first", "calls", 1))
	stats := redis.NewClient(server.Options())
	t.Cleanup(func() { _ = stats.Close() })
	reads := func() int { return redisCalls(t, stats) }
	stale := time.Minute
	refuse := func(key string) {
		req := request(key, "calls", 1)
		refused, err := in.Consume(t.Context(), req)
		in.expectCode(CodeRateLimited, req.Key, err)
		req.MaxStale = &stale
		got, err := in.CheckBalances(t.Context(), req, &refused)
		require.True(t, err == nil && got.Items[0].Remaining == 9, "%v, %v", got, err)
	}
	testenv.Eventually(t, func() bool {
		refuse("another")
		_, held := in.copies.Held(nil, []ledger.BalanceKey{{Tenant: "acme", Meter: "calls"}}, &stale)
		return held
	}, "the balance is held")
	began, before := time.Now(), reads()
	for i := range flood {
		refuse(strconv.Itoa(i))
	}
	// Without the memory of denials each consume makes a request. A remembered denial expires after a while, and other
	// code of the process also sends requests to Redis.
	took := time.Since(began)
	if n, most := reads()-before, flood/4+int(took/(10*time.Millisecond)); n > most {
		t.Errorf("%d refused consumes in %s made %d requests of Redis, want %d at most", flood, took, n, most)
	} else {
		t.Logf("%d refused consumes in %s made %d requests of Redis", flood, took, n)
	}
}

func TestCheckBalances_PostgresSlow_ReturnsSoon(t *testing.T) {
	t.Parallel()
	url := testenv.Postgres(t)
	in := newInstance(t, url, patientClient(testenv.Redis(t))).catalogue()
	in.awaitAnnouncements(url)
	in.checks(request("", "calls", 1)) // puts the tenant into memory
	table := lockRows(t, url, "LOCK TABLE balances IN ACCESS EXCLUSIVE MODE")
	defer table.release()
	testenv.Eventually(t, func() bool { // repeated, because the lock may come after the read
		got, err := in.CheckBalances(t.Context(), fromPostgres(request("", "calls", 1)), &Debited{LimitsDegraded: true})
		require.False(t, err == nil && !got.Degraded, got)
		return table.waiters() > 0
	}, "it returns while its read waits")
}
