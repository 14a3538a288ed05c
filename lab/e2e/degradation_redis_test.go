package e2e

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
)

// redisFault checks the promise for every fault of Redis: all calls succeed during the fault, and no acknowledged
// operation is lost.
func (tr *trial) redisFault(begin, end func(), known func() bool) {
	tr.t.Helper()
	tr.degradedIsWell = true
	tr.through(begin, end, known)
	tr.each(everyKind, tr.begun, "success", succeeds)
	tr.exactlyWhatWasAcknowledged()
}

// redisAway is redisFault for a fault during which the instance decides limits without Redis after a while. Within 5
// s after the fault, Redis decides again; TestOutage_RedisKilled_CallersDoNotNotice checks that.
func (tr *trial) redisAway(begin, end func()) *trial {
	tr.t.Helper()
	tr.redisFault(begin, end, tr.answers("check consume", degraded))
	tr.each("check consume", tr.known, "a decision without Redis", degraded)
	return tr
}

func degraded(c call) bool { return c.degraded }

func TestDegradation_RedisDown_CallersDoNotNotice(t *testing.T) {
	t.Parallel()
	server := testenv.RedisPrivate(t)
	newTrial(t, testenv.Postgres(t), server.URL).redisAway(server.Kill, server.Start)
}

func TestDegradation_RedisPaused_CallersDoNotNotice(t *testing.T) {
	t.Parallel()
	server := testenv.RedisPrivate(t)
	newTrial(t, testenv.Postgres(t), server.URL).redisAway(server.Pause, server.Resume)
}

func TestDegradation_RedisSlow_BudgetHolds(t *testing.T) {
	t.Parallel()
	link, url := testenv.NewLinkTo(t, testenv.RedisURL(t))
	tr := newTrial(t, testenv.Postgres(t), url)
	tr.redisAway(func() { link.Delay.Store(int64(waitMax)) }, func() { link.Delay.Store(0) })
}

func TestDegradation_NetworkToRedisCut_CallersDoNotNotice(t *testing.T) {
	t.Parallel()
	link, url := testenv.NewLinkTo(t, testenv.RedisURL(t))
	newTrial(t, testenv.Postgres(t), url).redisAway(link.Cut, link.Heal)
}

func TestDegradation_RedisFull_CallersDoNotNotice(t *testing.T) {
	t.Parallel()
	server := testenv.RedisPrivate(t)
	client := testenv.CloseAtEnd(t, redis.NewClient(server.Options()))
	set := func(bytes string) {
		assert.NoError(t, client.ConfigSet(t.Context(), "maxmemory", bytes).Err())
	}
	newTrial(t, testenv.Postgres(t), server.URL).redisAway(func() { set("1") }, func() { set("0") })
}

func TestDegradation_RedisFlushed_LimitsKeepTheirLevels(t *testing.T) {
	t.Parallel()
	server := testenv.RedisPrivate(t)
	client := testenv.CloseAtEnd(t, redis.NewClient(server.Options()))
	tr := newTrial(t, testenv.Postgres(t), server.URL)
	tr.in.do(t, http.StatusCreated, "PUT", "/v1/limits/two", "", object{"per": []string{"tenant"}, "match": object{"route": "/two"}, "kind": "token_bucket", "rate": "2/day", "burst": 2})
	body := debitOf("acme", "api_calls", 1)
	body["route"] = "/two"
	testenv.Eventually(t, func() bool { // the instance has loaded the limit
		a, err := tr.in.send(t.Context(), "POST", "/v1/check", "", body)
		return err == nil && strings.Contains(string(a.body), `"rule":"two"`)
	})
	spend := func() (granted int) {
		for i := range 3 {
			a, err := tr.in.send(t.Context(), "POST", "/v1/consume", fmt.Sprintf("two-%d-%d", tr.rates.Add(1), i), body)
			require.NoError(t, err)
			if a.status == http.StatusOK {
				granted++
			}
		}
		return granted
	}
	require.Equal(t, 2, spend(), "the limit of 2 granted")
	flush := func() {
		assert.NoError(t, client.FlushAll(context.Background()).Err())
	}
	tr.through(flush, func() {}, always)
	tr.each(everyKind, tr.begun, "success", succeeds)
	assert.Zero(t, spend(), "after the flush the used limit of 2 granted")
}

func TestDegradation_RedisFailsOver_CallersDoNotNotice(t *testing.T) {
	t.Parallel()
	group := testenv.RedisSentinelsPrivate(t)
	tr := newTrial(t, testenv.Postgres(t), group.URL)
	tr.redisFault(group.Master.Kill, func() { group.AwaitMaster(group.Replica) }, always)
}

func TestDegradation_BothDown_ChecksFromThisProcess(t *testing.T) {
	t.Parallel()
	pg, server := testenv.PostgresPrivate(t), testenv.RedisPrivate(t)
	tr := newTrial(t, pg.URL, server.URL)
	tr.degradedIsWell = true
	tr.through(func() { pg.Kill(); server.Kill() }, func() { server.Start(); pg.Start() }, tr.postgresIsAway)
	tr.each("check", tr.begun, "an answer from this process", succeeds)
	tr.refusedAtOnce()
	tr.exactlyWhatWasAcknowledged()
}

// The pause is longer than every time limit. PostgreSQL has then ended the transactions of the paused instance, and
// the other instance no longer counts the paused instance as live.
func TestDegradation_InstancePaused_OthersServeAndItGoesOn(t *testing.T) {
	t.Parallel()
	databaseURL, redisURL := testenv.Postgres(t), testenv.RedisURL(t)
	tr := newTrial(t, databaseURL, redisURL)
	other := serve(t, tr.env)
	answers := make(chan call, 3)
	tr.in.signal(syscall.SIGSTOP)
	for i, kind := range []string{"check", "consume", "debit"} {
		go func() { answers <- tr.in.call(context.Background(), kind, "paused-"+kind, int64(i)) }()
	}
	db := testenv.Connect(t, databaseURL)
	left := ""
	defer func() { t.Log("left:", left) }()
	testenv.Eventually(t, func() bool {
		for kind := range strings.FieldsSeq(everyKind) {
			c := other.call(t.Context(), kind, fmt.Sprintf("other-%s-%d", kind, tr.rates.Add(1)), tr.rates.Add(1))
			if left = "on the other instance: " + c.String(); !succeeds(c) {
				return false // it may have waited for a lock of the paused instance, until PostgreSQL ended the transaction
			}
		}
		var open int
		require.NoError(t, db.QueryRow(t.Context(), "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND state LIKE 'idle in%'").Scan(&open))
		left = fmt.Sprintf("%d transactions, %s replicas", open, other.replicas(t))
		return left == "0 transactions, 1 replicas"
	}, "PostgreSQL and the other instance have forgotten it, and the other instance serves each kind")
	tr.in.signal(syscall.SIGCONT)
	for range 3 {
		c, _ := testenv.Receive(t, answers)
		none := c.status == 0 // the time to read the request ended in the pause
		assert.True(t, succeeds(c) || refused(c) || none, "on the paused instance: %s", c)
	}
	await := func(in *instance, kind, key string) {
		testenv.Eventually(t, func() bool { return succeeds(in.call(t.Context(), kind, key, 0)) }, key)
	}
	await(tr.in, "debit", "after")
	await(other, "consume", "paused-consume")
	await(other, "debit", "paused-debit")
	must(t, tr.env, "verify")
}
