package gate

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/catalog"
	"github.com/quotasvc/quotasvc/internal/gate/balances"
	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/lab/testenv"
	"github.com/quotasvc/quotasvc/internal/store/redisstore"
)

func TestOutage_RedisKilled(t *testing.T) {
	t.Parallel()
	server := testenv.RedisPrivate(t)
	in := newInstance(t, testenv.Postgres(t), patientClient(server.Options()))
	in.catalogue(
		catalog.Limit{Rule: "two", Per: []string{"tenant"}, Kind: "token_bucket", Rate: "2/day"},
		catalog.Limit{
			Rule: "strict", Per: []string{"tenant"}, Match: catalog.Match{Route: "login"}, Kind: "token_bucket", Rate: "5/day", OnBackendError: "closed",
		},
	)
	login := request("login", "calls", 1)
	login.Route = "login"
	require.False(t, in.checks(request("", "calls", 1)).Degraded, "before")
	server.Kill()
	in.nothingHeld()

	got, err := in.Check(t.Context(), request("", "calls", 1))
	assert.True(t, err == nil && got.Allowed && got.Source != SourceCache && got.Degraded,
		"check without redis: %+v, %v; want it from the ledger or this process, degraded", got, err)
	made := in.consumes("", "consume without redis", request("one", "calls", 1))
	assert.True(t, made.Result.Items[0].Remaining == 9 && made.Limits[0].Degraded, "consume without redis: %+v", made)
	_, err = in.Consume(t.Context(), login)
	refused, ok := errors.AsType[*ReducedCapacity](err)
	assert.True(t, ok && len(refused.Violated) == 1 && refused.Violated[0] == "strict" && refused.RetryAfter > 0, "a closed rule without redis: %v", err)
	_, err = in.Check(t.Context(), login)
	assert.True(t, CodeOf(err) == errcode.Unavailable, "a check of a closed rule without redis: %v", err)
	assert.EqualValues(t, 9, in.remaining("calls"), "units are left, want 9: the refused request was debited")

	server.Start()
	testenv.Eventually(t, func() bool {
		got, err := in.Check(t.Context(), request("", "calls", 1))
		return err == nil && got.Source == SourceCache && !got.Degraded && got.Items[0].Remaining == 9
	}, "copies are used again")
}

func TestOutage_PostgresKilled(t *testing.T) {
	t.Parallel()
	server := testenv.PostgresPrivate(t)
	in := newInstance(t, server.URL, patientClient(testenv.Redis(t))).catalogue(twoADay)
	in.consumes("", "one", request("one", "calls", 4))
	_, err := in.checkFrom(SourceCache, request("", "calls", 1))
	require.NoError(t, err)
	server.Kill()

	got, err := in.Check(t.Context(), request("", "calls", 1))
	assert.True(t, err == nil && got.Allowed && got.Items[0].Remaining == 6,
		"check from a fresh copy: %+v, %v", got, err)
	for range 3 { // only the first check queries PostgreSQL
		got, err = in.Check(t.Context(), fromPostgres(request("", "calls", 7)))
		assert.True(t, err == nil && got.Degraded && got.Code == errcode.QuotaExceeded && !got.AsOf.IsZero(),
			"check with MaxStale 0: %+v, %v; want it degraded", got, err)
	}
	_, err = in.Check(t.Context(), request("", "credits", 1))
	assert.True(t, CodeOf(err) == errcode.Unavailable, "check of a balance without a copy: %v", err)
	for name, call := range map[string]func(context.Context, Request) (Debited, error){"debit": in.Debit, "consume": in.Consume} {
		_, err := call(t.Context(), request("two-"+name, "calls", 1))
		e, ok := errors.AsType[*errcode.Error](err)
		assert.True(t, ok && (e.Code == errcode.Unavailable || e.Code == errcode.OutcomeUnknown) && e.RetryAfter > 0,
			"%s: %v; want unavailable with a RetryAfter", name, err)
	}
	server.Start()
	testenv.Eventually(t, func() bool {
		_, err := in.Debit(t.Context(), request("three", "calls", 1))
		return err == nil
	}, "debits are made again")
	testenv.Eventually(t, func() bool {
		got, err := in.Check(t.Context(), fromPostgres(request("", "calls", 1)))
		return err == nil && !got.Degraded && got.Source == SourceLedger
	}, "checks are not degraded any more")
	assert.EqualValues(t, 1, in.remainingTokens(), "tokens are left, want 1: the failed consume kept its token")
}

func TestOutage_PostgresHangs_ChecksDoNot(t *testing.T) {
	t.Parallel()
	database := testenv.Postgres(t)
	link, url := testenv.NewLinkTo(t, database)
	in := newInstance(t, url, patientClient(testenv.Redis(t)), func(c *Config) { c.LoadBudget = 200 * time.Millisecond })
	in.catalogue()
	in.awaitAnnouncements(database)
	testenv.Eventually(t, func() bool { // repeated until a read succeeds within its budget
		_, err := in.Check(t.Context(), request("", "calls", 1))
		return err == nil
	}, "a check is answered")
	link.Cut()
	defer link.Heal()
	started, before := time.Now(), in.reads()
	for range 50 {
		got, err := in.Check(t.Context(), fromPostgres(request("", "calls", 1)))
		require.True(t, err == nil && got.Allowed && got.Degraded, "check: %+v, %v", got, err)
	}
	took, n := time.Since(started), in.reads()-before
	// Another check may begin before the first fails.
	assert.True(t, n <= 2+uint64(took/loadPause), "postgresql was asked %d times in %s", n, took)
}

func TestOutage_BothKilled(t *testing.T) {
	t.Parallel()
	url, end := breakable(t, testenv.Postgres(t))
	redis := testenv.RedisPrivate(t)
	in := newInstance(t, url, patientClient(redis.Options())).catalogue()
	in.debits("", "one", request("one", "calls", 4))
	end()
	redis.Kill()
	got, err := in.Check(t.Context(), request("", "calls", 7))
	assert.True(t, err == nil && got.Degraded && got.Source == SourceLocal && got.Code == errcode.QuotaExceeded,
		"check: %+v, %v; want this process's copy, degraded", got, err)
}

// newWithCopy returns an instance that has just read the balance calls of acme. setAge stops the instance's clock at
// the instant at which the copy has the given age.
func newWithCopy(t *testing.T, database string, client redis.UniversalClient, change ...func(*Config)) (in *instance, setAge func(time.Duration)) {
	t.Helper()
	in = newInstance(t, database, client, change...)
	in.catalogue(catalog.Limit{Rule: "limit", Per: []string{"tenant"}, Match: catalog.Match{Route: "limited"}, Kind: "token_bucket", Rate: "1000/s"})
	got := in.checks(fromPostgres(request("", "calls", 1)))
	require.Equal(t, SourceLedger, got.Source)
	return in, func(d time.Duration) { in.clock = func() time.Time { return got.AsOf.Add(d) } }
}

// pendingCopies returns the number of copies that wait to be published.
func (in *instance) pendingCopies() float64 {
	in.t.Helper()
	return in.sum("quotasvc_balance_cache_pending_copies")
}

func (in *instance) loads() float64 { return testutil.ToFloat64(in.metrics.loads) }

// While Redis is down, checks read a balance from PostgreSQL at most once a second.
func TestOutage_RedisAway_OneReadPerSecondAndBalance(t *testing.T) {
	t.Parallel()
	server := testenv.RedisPrivate(t)
	in, setAge := newWithCopy(t, testenv.Postgres(t), patientClient(server.Options()))
	server.Kill()
	setAge(balances.AwayFreshFor)
	before := in.loads()
	for i := range 100 {
		req := request("", "calls", 10)
		if i%2 == 0 { // every second request has a limit
			req.Route = "limited"
		}
		got, err := in.Check(t.Context(), req)
		require.True(t, err == nil && got.Allowed && got.Source == SourceLocal && got.Degraded,
			"check %d: %+v, %v; want this process's copy, degraded", i, got, err)
	}
	assert.Zero(t, in.loads()-before, "reads of postgresql")
	assert.Equal(t, SourceLedger, in.checks(fromPostgres(request("", "calls", 1))).Source, "with MaxStale 0")
	setAge(balances.AwayFreshFor + 10*time.Second) // more than the duration of this test, and less than FreshFor
	testenv.Eventually(t, func() bool {            // a read may exceed balances.ReadPatience
		got, err := in.Check(t.Context(), request("", "calls", 1))
		return err == nil && got.Source == SourceLedger
	}, "the ledger's answer in place of an older copy")
}

// Redis is down, or has lost every copy. Then only a few checks at a time read balances from PostgreSQL. The other
// checks use copies that are not older than usual.
func TestOutage_NoSpareSlot_ChecksUseCopies(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(*testenv.RedisServer){
		"away": (*testenv.RedisServer).Kill, "empty": (*testenv.RedisServer).Restart,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := testenv.RedisPrivate(t)
			client := patientClient(server.Options())
			in, setAge := newWithCopy(t, testenv.Postgres(t), client)
			testenv.Eventually(t, func() bool { // else a copy that is still being published would come later
				keys, err := client.DBSize(t.Context()).Result()
				return err == nil && keys > 0 && in.pendingCopies() == 0
			}, "the copy is published")
			lose(server)
			for range cap(in.loader.spareSlots) {
				in.loader.spareSlots <- struct{}{}
			}
			setAge(in.policy.FreshFor)
			got, err := in.Check(t.Context(), request("", "calls", 1))
			assert.True(t, err == nil && got.Allowed && got.Source != SourceLedger && got.Degraded,
				"%+v, %v; want the copy, degraded", got, err)
			<-in.loader.spareSlots
			got, err = in.Check(t.Context(), request("", "calls", 1))
			// Without Redis the read may exceed balances.ReadPatience.
			assert.True(t, err == nil && (name != "empty" || got.Source == SourceLedger),
				"a free slot: %+v, %v; want the ledger's answer", got, err)
			assert.Len(t, in.loader.spareSlots, cap(in.loader.spareSlots)-1, "the slot was not returned")
			in.loader.spareSlots <- struct{}{}
			setAge(2 * in.policy.FreshFor)
			got, err = in.Check(t.Context(), request("", "calls", 1))
			assert.True(t, err == nil && got.Source == SourceLedger, "an old copy: %+v, %v", got, err)
		})
	}
}

func TestOutage_RedisAwayPostgresSlow_CopyIsUsed(t *testing.T) {
	t.Parallel()
	server, url := testenv.RedisPrivate(t), testenv.Postgres(t)
	in, setAge := newWithCopy(t, url, patientClient(server.Options()))
	in.awaitAnnouncements(url)
	server.Kill()
	setAge(balances.AwayFreshFor + time.Second)
	table := lockRows(t, url, "LOCK TABLE balances IN ACCESS EXCLUSIVE MODE")
	defer table.release()
	testenv.Eventually(t, func() bool { // repeated, because the lock may come after the read
		got, err := in.Check(t.Context(), request("", "calls", 1))
		require.True(t, err == nil && got.Allowed && got.Source == SourceLocal && got.Degraded,
			"%+v, %v; want this process's copy, degraded", got, err)
		return table.waiters() > 0
	}, "a check is answered while its read waits")
}

// While Redis hangs, only the first few checks wait for it, with limits or without. Then the circuit breaker opens.
func TestOutage_RedisHangs_ChecksDoNot(t *testing.T) {
	t.Parallel()
	server := testenv.RedisPrivate(t)
	in := newInstance(t, testenv.Postgres(t), serviceClient(t, server.URL))
	in.catalogue(catalog.Limit{Rule: "limit", Per: []string{"tenant"}, Match: catalog.Match{Route: "limited"}, Kind: "token_bucket", Rate: "1000/s"})
	limited := request("", "calls", 1)
	limited.Route = "limited"
	for _, req := range []Request{limited, request("", "calls", 1)} {
		_, err := in.checkFrom(SourceCache, req)
		require.NoError(t, err)
	}
	server.Pause()
	defer server.Resume()
	in.nothingHeld()
	const failures = "quotasvc_limit_backend_failures_total"
	started, before := time.Now(), in.sum(failures, "redis")
	for i := range 100 {
		req := request("", "calls", 1)
		if i%2 == 0 {
			req = limited
		}
		got, err := in.Check(t.Context(), req)
		require.True(t, err == nil && got.Allowed && got.Source != SourceCache, "check %d: %+v, %v", i, got, err)
	}
	took, n := time.Since(started), in.sum(failures, "redis")-before
	assert.True(t, n >= 1 && n <= 6+took.Seconds()/redisstore.RetryAfter.Seconds(),
		"%v checks waited for redis in %s; five open the breaker", n, took)
}
