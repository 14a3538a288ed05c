package pg

import (
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/lab/testenv"
)

// If a COMMIT is cancelled while it waits for a synchronous standby, it has happened only on the primary. PostgreSQL
// shows its rows, and a failover loses them. The service cancels after four seconds. Its next attempt finds the key
// in the journal, as a replay. This replay must not be answered either, although it stores nothing. It locks the
// balance (FOR NO KEY UPDATE), which gives its transaction an xid. So its COMMIT also waits for the standby.
func TestBatch_StandbyAway_CancelledCommitIsNotAcknowledged(t *testing.T) {
	t.Parallel()
	server := testenv.PostgresWithStandby(t)
	b := newBundleOn(t, bothHosts(t, server)).simple("acme", 100)
	b.mustDebit(debitOf("acme", "first", 1))
	b.answersInTime()
	server.Standby.Pause()

	// The second request writes nothing, so its own outcome is known. Its answer says that an earlier request with
	// the key may have been carried out.
	for _, want := range []errcode.Code{errcode.OutcomeUnknown, errcode.Unavailable} {
		began := time.Now()
		wantRefusal(b, want, debitOf("acme", "k", 1))
		assert.LessOrEqual(t, time.Since(began), 10*promised, "%s", want)
	}
	// Readers see the rows of the cancelled COMMIT, but only on the primary.
	wantEqual(t, "entries on the primary", entriesOf(t, server.URL, "k"), 1)

	server.Kill()
	server.Standby.Kill() // the standby loses the WAL that it had received and not yet stored
	server.Standby.Start()
	server.Promote()
	b.awaitDebit("acme", "k")
	b.reconnect()
	wantEqual(t, "used", b.mustBalance("acme", "api_calls").Used, 2)
	b.mustVerify()
}

// bothHosts returns a URL with the hosts of the primary and of the standby. It connects to the server that accepts
// writes.
func bothHosts(t *testing.T, server *testenv.PostgresReplicated) string {
	t.Helper()
	u, err := url.Parse(server.URL)
	require.NoError(t, err)
	standby, err := url.Parse(server.Standby.URL)
	require.NoError(t, err)
	u.Host += "," + standby.Host
	u.RawQuery = "sslmode=disable&target_session_attrs=read-write"
	return u.String()
}

// entriesOf counts the entries with a key on one server. It does not wait for a standby, because a transaction that
// only reads has no xid.
func entriesOf(t *testing.T, url, key string) int {
	t.Helper()
	server := (&bundle{t: t, url: url}).another()
	return one[int](server, "SELECT count(*) FROM entries WHERE operation_id = $1", key)
}
