package main

import (
	"context"
	"net/url"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/quotasvc/quotasvc/internal/testenv"
)

func TestDegradation_PostgresPaused_RefusedInFiveSecondsThenAtOnce(t *testing.T) {
	t.Parallel()
	pg := testenv.PostgresPrivate(t)
	tr := newTrial(t, pg.URL, testenv.RedisURL(t))
	tr.through(6*time.Second, pg.Pause, pg.Resume)
	tr.each("check", 0, "an answer from the cache", succeeds)
	tr.each("consume debit admin", knownAfter, "a refusal at once", refusedAtOnce)
	tr.exactlyWhatWasAcknowledged()
}

func TestDegradation_PostgresDown_RefusedAtOnce(t *testing.T) {
	t.Parallel()
	pg := testenv.PostgresPrivate(t)
	tr := newTrial(t, pg.URL, testenv.RedisURL(t))
	tr.through(2500*time.Millisecond, pg.Kill, pg.Start)
	tr.each("check", 0, "an answer from the cache", succeeds)
	tr.each("consume debit admin", time.Second, "a refusal at once", refusedAtOnce)
	tr.exactlyWhatWasAcknowledged()
}

func TestDegradation_PostgresSlow_CallersWaitAndSucceed(t *testing.T) {
	t.Parallel()
	link, url := testenv.NewLinkTo(t, testenv.Postgres(t))
	tr := newTrial(t, url, testenv.RedisURL(t))
	tr.through(4*time.Second, func() { link.Delay.Store(int64(60 * time.Millisecond)) }, func() { link.Delay.Store(0) })
	tr.each("check consume debit admin", 0, "success", succeeds)
	tr.exactlyWhatWasAcknowledged()
}

func TestDegradation_NetworkToPostgresCut_RefusedInFiveSecondsThenAtOnce(t *testing.T) {
	t.Parallel()
	testenv.NotOnCitus(t, "the link leads to the coordinator, and batches go to the nodes")
	link, url := testenv.NewLinkTo(t, testenv.Postgres(t))
	tr := newTrial(t, url, testenv.RedisURL(t))
	tr.through(6*time.Second, link.Cut, link.Heal)
	tr.each("check", 0, "an answer from the cache", succeeds)
	tr.each("consume debit admin", knownAfter, "a refusal at once", refusedAtOnce)
	tr.exactlyWhatWasAcknowledged()
}

// Somebody else takes every connection that the service loses.
func TestDegradation_PostgresOutOfConnections_RefusedUntilThereAreSome(t *testing.T) {
	t.Parallel()
	pg := testenv.PostgresPrivate(t)
	db := connectTo(t, pg.URL)
	tr := newTrial(t, pg.URL, testenv.RedisURL(t))
	tr.through(2500*time.Millisecond, func() {
		runSQL(t, db, "ALTER ROLE quotasvc_test_service CONNECTION LIMIT 0")
		runSQL(t, db, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'quotasvc_test_service'")
	}, func() { runSQL(t, db, "ALTER ROLE quotasvc_test_service CONNECTION LIMIT -1") })
	tr.each("check", 0, "an answer from the cache", succeeds)
	tr.each("consume debit admin", time.Second, "a refusal within a second", func(c call) bool {
		answeredAfter := succeeds(c) && c.sent.Add(c.took).After(tr.end)
		return (refused(c) || answeredAfter) && c.took < time.Second+busy
	})
	tr.exactlyWhatWasAcknowledged()
}

func TestDegradation_PostgresReadOnly_RefusedAtOnce(t *testing.T) {
	t.Parallel()
	pg := testenv.PostgresPrivate(t)
	tr := newTrial(t, pg.URL, testenv.RedisURL(t))
	db := connectTo(t, pg.URL)
	set := func(to string) {
		runSQL(t, db, "SET default_transaction_read_only = off")
		runSQL(t, db, "ALTER SYSTEM SET default_transaction_read_only = "+to)
		runSQL(t, db, "SELECT pg_reload_conf()")
	}
	tr.through(2500*time.Millisecond, func() { set("on") }, func() { set("off") })
	tr.each("check", 0, "an answer from the cache", succeeds)
	tr.each("consume debit admin", time.Second, "a refusal at once", refusedAtOnce)
	tr.exactlyWhatWasAcknowledged()
}

// What fits into pages that exist is stored for a while longer; changes of limits need no new page at all.
func TestDegradation_PostgresDiskFull_RefusedWithinASecond(t *testing.T) {
	t.Parallel()
	pg, disk := testenv.PostgresOnSmallDisk(t)
	tr := newTrial(t, pg.URL, testenv.RedisURL(t))
	tr.through(4*time.Second, disk.Fill, disk.Free)
	tr.each("check", 0, "an answer from the cache", succeeds)
	tr.each("consume debit", 2*time.Second, "a refusal within a second", func(c call) bool { return refused(c) && c.took < time.Second+busy })
	tr.exactlyWhatWasAcknowledged()
}

func TestDegradation_StandbyAway_OutcomeUnknownInFiveSeconds(t *testing.T) {
	t.Parallel()
	pg := testenv.PostgresWithStandby(t)
	tr := newTrial(t, pg.URL, testenv.RedisURL(t))
	tr.through(5500*time.Millisecond, pg.Standby.Pause, pg.Standby.Resume)
	tr.each("check", 0, "an answer from the cache", succeeds)
	tr.each("consume debit", 200*time.Millisecond, "no success", func(c call) bool { return refused(c) || c.sent.Add(c.took).After(tr.end) })
	tr.exactlyWhatWasAcknowledged()
}

func TestDegradation_PostgresFailsOver_RefusedUntilPromoted(t *testing.T) {
	t.Parallel()
	pg := testenv.PostgresWithStandby(t)
	tr := newTrial(t, bothHosts(t, pg), testenv.RedisURL(t))
	tr.through(2*time.Second, pg.Kill, pg.Promote)
	tr.each("check", 0, "an answer from the cache", succeeds)
	tr.each("consume debit admin", time.Second, "a refusal at once", refusedAtOnce)
	tr.exactlyWhatWasAcknowledged()
}

// bothHosts returns the URL of whichever server writes.
func bothHosts(t *testing.T, pg *testenv.PostgresReplicated) string {
	t.Helper()
	primary, err := url.Parse(pg.URL)
	if err != nil {
		t.Fatal(err)
	}
	standby, err := url.Parse(pg.Standby.URL)
	if err != nil {
		t.Fatal(err)
	}
	primary.Host += "," + standby.Host
	primary.RawQuery = "sslmode=disable&target_session_attrs=read-write"
	return primary.String()
}

func connectTo(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	db, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close(context.Background()) })
	return db
}

func runSQL(t *testing.T, db *pgx.Conn, sql string) {
	t.Helper()
	if _, err := db.Exec(t.Context(), sql); err != nil {
		t.Errorf("%s: %v", sql, err)
	}
}
