package e2e

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
)

// The replay of a replica is paused. The metrics, the reports and /readyz show its lag in seconds and bytes until the
// replica has caught up.
func TestReportReplica_ReplayPaused_LagIsShown(t *testing.T) {
	t.Parallel()
	servers := testenv.PostgresWithStandby(t)
	in := serve(t, append(backends(t), "QUOTASVC_DATABASE_URL="+testenv.AsService(servers.URL), "QUOTASVC_REPORT_DATABASE_URL="+testenv.AsService(servers.Standby.URL)))
	in.setUp(t, 1000)
	debited := 0
	debit := func() {
		t.Helper()
		debited++
		in.do(t, http.StatusOK, "POST", "/v1/debits", fmt.Sprint("debit-", debited), object{"tenant": "acme", "items": []object{{"meter": "api_calls", "amount": 1}}})
	}
	entries := func() (n int, lag float64) { // debits in the journal, by a report that the replica answers
		t.Helper()
		got := in.do(t, http.StatusOK, "GET", "/v1/tenants/acme/entries?kind=debit&limit=500", "", nil)
		lag, err := strconv.ParseFloat(got.header.Get("X-Quota-Report-Lag"), 64)
		if err != nil {
			lag = -1
		}
		return strings.Count(string(got.body), `"operation_id"`), lag
	}
	debit()
	testenv.Eventually(t, func() bool { n, lag := entries(); return n == 1 && lag >= 0 && lag < 3 }, "the replica has the first debit, and its lag is small")
	testenv.Eventually(t, func() bool { return strings.Contains(string(in.ask(t, "/readyz").body), `"report_replica":"ok"`) }, "/readyz says that the replica answers")

	replay := testenv.Connect(t, servers.Standby.URL)
	testenv.Exec(t, replay, "SELECT pg_wal_replay_pause()")
	testenv.Eventually(t, func() bool {
		var state string
		require.NoError(t, replay.QueryRow(t.Context(), "SELECT pg_get_wal_replay_pause_state()").Scan(&state))
		return state == "paused"
	}, "replay stands still")
	paused := time.Now()
	debit()
	testenv.Eventually(t, func() bool {
		text := in.metrics(t)
		return metricOf(text, "quotasvc_report_replica_lag_seconds") > 3 && metricOf(text, "quotasvc_report_replica_lag_bytes") > 100
	}, "the metrics show seconds and bytes")
	behind := metricOf(in.metrics(t), "quotasvc_report_replica_lag_seconds")
	assert.LessOrEqual(t, behind, time.Since(paused).Seconds()+30) // ten times the lag of a replica that keeps up
	n, lag := entries()
	assert.True(t, n == 1 && lag >= 3, "a report has %d debits, and is %.1f s behind; want 1 and 3 or more", n, lag)
	got := string(in.ask(t, "/readyz").body)
	assert.True(t, strings.Contains(got, `"report_lag":{"seconds":`) && strings.Contains(got, `"ready":true`), "/readyz: %s", got)
	// A present balance is read from the primary, because the replica lacks the balance's last entry.
	statement := in.do(t, http.StatusOK, "GET", "/v1/tenants/acme/statements/api_calls/current", "", nil)
	assert.Empty(t, statement.header.Get("X-Quota-Report-Lag"), "a statement from the primary")

	testenv.Exec(t, replay, "SELECT pg_wal_replay_resume()")
	testenv.Eventually(t, func() bool { n, lag := entries(); return n == 2 && lag >= 0 && lag < 3 }, "it has caught up")
	servers.Standby.Kill()
	testenv.Eventually(t, func() bool {
		return strings.Contains(in.metrics(t), "quotasvc_report_replica_up 0\n") && metricOf(in.metrics(t), "quotasvc_report_replica_lag_seconds") > 2
	}, "the replica's end is shown")
}

// metricOf returns the value of the metric with this name and these labels. It returns -1 if there is none.
func metricOf(text, name string) float64 {
	for line := range strings.Lines(text) {
		if value, ok := strings.CutPrefix(strings.TrimSpace(line), name+" "); ok {
			if v, err := strconv.ParseFloat(value, 64); err == nil {
				return v
			}
		}
	}
	return -1
}

func TestServe_SynchronousCommitOff_Warns(t *testing.T) {
	t.Parallel()
	database := testenv.Postgres(t)
	testenv.Exec(t, testenv.Connect(t, database), "ALTER DATABASE "+urlOf(t, database).Path[1:]+" SET synchronous_commit = off")
	in := serve(t, append(backends(t), "QUOTASVC_DATABASE_URL="+testenv.AsService(database)))
	in.logged("synchronous_commit is off", 1)
}
