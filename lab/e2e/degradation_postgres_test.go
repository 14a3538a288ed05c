package e2e

import (
	"testing"
	"time"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
)

func TestDegradation_PostgresPaused_RefusedInFiveSecondsThenAtOnce(t *testing.T) {
	t.Parallel()
	pg := testenv.PostgresPrivate(t)
	tr := newTrial(t, pg.URL, testenv.RedisURL(t))
	tr.through(pg.Pause, pg.Resume, tr.postgresIsAway)
	tr.each("check", tr.begun, "an answer from the cache", succeeds)
	tr.refusedAtOnce()
	tr.exactlyWhatWasAcknowledged()
}

func TestDegradation_PostgresDown_RefusedAtOnce(t *testing.T) {
	t.Parallel()
	pg := testenv.PostgresPrivate(t)
	tr := newTrial(t, pg.URL, testenv.RedisURL(t))
	tr.through(pg.Kill, pg.Start, tr.postgresIsAway)
	tr.each("check", tr.begun, "an answer from the cache", succeeds)
	tr.refusedAtOnce()
	tr.exactlyWhatWasAcknowledged()
}

func TestDegradation_PostgresSlow_CallersWaitAndSucceed(t *testing.T) {
	t.Parallel()
	link, url := testenv.NewLinkTo(t, testenv.Postgres(t))
	tr := newTrial(t, url, testenv.RedisURL(t))
	const delay = 20 * time.Millisecond // a short delay, because an operation that takes 4 s is refused
	tr.through(func() { link.Delay.Store(int64(delay)) }, func() { link.Delay.Store(0) }, always)
	tr.each("check", tr.begun, "success", succeeds)
	tr.each("consume debit admin", tr.begun, "success after a round trip", func(c call) bool { return succeeds(c) && c.took > 2*delay })
	tr.exactlyWhatWasAcknowledged()
}

func TestDegradation_NetworkToPostgresCut_RefusedInFiveSecondsThenAtOnce(t *testing.T) {
	t.Parallel()
	testenv.NotOnCitus(t, "the link leads to the coordinator, and batches go to the nodes")
	link, url := testenv.NewLinkTo(t, testenv.Postgres(t))
	tr := newTrial(t, url, testenv.RedisURL(t))
	tr.through(link.Cut, link.Heal, tr.postgresIsAway)
	tr.each("check", tr.begun, "an answer from the cache", succeeds)
	tr.refusedAtOnce()
	tr.exactlyWhatWasAcknowledged()
}

// refusedSoon reports whether a call was refused within 10 s. This is ten times the promised second.
func refusedSoon(c call) bool { return refused(c) && c.took < 10*time.Second }

// The connection limit 0 has the same effect as another client that takes every connection that the service loses.
func TestDegradation_PostgresOutOfConnections_RefusedUntilThereAreSome(t *testing.T) {
	t.Parallel()
	pg := testenv.PostgresPrivate(t)
	db := testenv.Connect(t, pg.URL)
	tr := newTrial(t, pg.URL, testenv.RedisURL(t))
	tr.through(func() {
		testenv.Exec(t, db, "ALTER ROLE quotasvc_test_service CONNECTION LIMIT 0")
		testenv.Exec(t, db, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'quotasvc_test_service'")
	}, func() { testenv.Exec(t, db, "ALTER ROLE quotasvc_test_service CONNECTION LIMIT -1") }, tr.answers("consume debit admin", refused))
	tr.each("check", tr.begun, "an answer from the cache", succeeds)
	tr.each("consume debit admin", tr.known, "a refusal", refusedSoon)
	tr.exactlyWhatWasAcknowledged()
}

func TestDegradation_PostgresReadOnly_RefusedAtOnce(t *testing.T) {
	t.Parallel()
	pg := testenv.PostgresPrivate(t)
	tr := newTrial(t, pg.URL, testenv.RedisURL(t))
	db := testenv.Connect(t, pg.URL)
	set := func(to string) {
		testenv.Exec(t, db, "SET default_transaction_read_only = off")
		testenv.Exec(t, db, "ALTER SYSTEM SET default_transaction_read_only = "+to)
		testenv.Exec(t, db, "SELECT pg_reload_conf()")
	}
	tr.through(func() { set("on") }, func() { set("off") }, tr.postgresIsAway)
	tr.each("check", tr.begun, "an answer from the cache", succeeds)
	tr.refusedAtOnce()
	tr.exactlyWhatWasAcknowledged()
}

// On a full disk, PostgreSQL still stores rows for some time if they fit into existing pages. Changes of limits need
// no new page.
func TestDegradation_PostgresDiskFull_RefusedWithinASecond(t *testing.T) {
	t.Parallel()
	pg, disk := testenv.PostgresOnSmallDisk(t)
	tr := newTrial(t, pg.URL, testenv.RedisURL(t))
	tr.through(disk.Fill, disk.Free, tr.answers("consume debit", refused))
	tr.each("check", tr.begun, "an answer from the cache", succeeds)
	tr.each("consume debit", tr.known, "a refusal", refusedSoon)
	tr.exactlyWhatWasAcknowledged()
}

func TestDegradation_StandbyAway_OutcomeUnknownInFiveSeconds(t *testing.T) {
	t.Parallel()
	pg := testenv.PostgresWithStandby(t)
	tr := newTrial(t, pg.URL, testenv.RedisURL(t))
	tr.answersEach = 1 // each answer takes seconds
	tr.through(pg.Standby.Pause, pg.Standby.Resume, always)
	tr.each("check", tr.begun, "an answer from the cache", succeeds)
	tr.each("consume debit", tr.begun, "no success", refused)
	tr.exactlyWhatWasAcknowledged()
}

func TestDegradation_PostgresFailsOver_RefusedUntilPromoted(t *testing.T) {
	t.Parallel()
	pg := testenv.PostgresWithStandby(t)
	tr := newTrial(t, bothHosts(t, pg), testenv.RedisURL(t))
	tr.through(pg.Kill, pg.Promote, tr.postgresIsAway)
	tr.each("check", tr.begun, "an answer from the cache", succeeds)
	tr.refusedAtOnce()
	tr.exactlyWhatWasAcknowledged()
}

// bothHosts returns a URL with the addresses of both servers. Clients connect to the server that accepts writes.
func bothHosts(t *testing.T, pg *testenv.PostgresReplicated) string {
	t.Helper()
	primary := urlOf(t, pg.URL)
	primary.Host += "," + urlOf(t, pg.Standby.URL).Host
	primary.RawQuery = "sslmode=disable&target_session_attrs=read-write"
	return primary.String()
}
