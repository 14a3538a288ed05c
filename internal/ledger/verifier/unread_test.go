package verifier

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
	"github.com/quotasvc/quotasvc/internal/ledger/audit"
)

// background runs a verification to its end, as if a client had requested it.
func (v *Verifier) background(t *testing.T, tenant string) (got Verification) {
	t.Helper()
	started, err := v.StartVerification(t.Context(), tenant)
	require.NoError(t, err)
	testenv.Eventually(t, func() bool {
		got, err = v.VerificationStatus(t.Context(), started.ID)
		require.NoError(t, err)
		return got.Status != VerificationRunning
	}, "the end of a verification")
	return got
}

// If a balance cannot be read, it is unknown whether it has a difference. Verifications and the watch report neither
// that it is clean nor that it differs, even if the watch found a difference before.
func TestVerify_BalanceUnread_NeitherCleanNorDrift(t *testing.T) {
	t.Parallel()
	b := newBundle(t).history()
	b.mustVerify()
	mustDo(b, debitOf("acme", "new", 1))
	b.exec(`DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET lock_timeout = 100', current_database()); END $$`)
	v := b.open(nil)
	v.wholeUpTo, v.watch.full = 0, time.Now()
	holder, err := pgx.Connect(t.Context(), b.url)
	b.must(err)
	defer func() { _ = holder.Close(context.Background()) }()
	lock := func() pgx.Tx {
		tx, err := holder.Begin(t.Context())
		b.must(err)
		_, err = tx.Exec(t.Context(), "LOCK TABLE entries IN ACCESS EXCLUSIVE MODE")
		b.must(err)
		return tx
	}
	locked := lock()
	report, err := v.Verify(t.Context(), Options{})
	b.must(err)
	want := audit.Key{Tenant: "acme", Meter: "api_calls"}
	assert.True(t, !report.Clean() && report.Count == 0 && report.Unread == 1 && report.UnreadFirst[0] == want && report.Unchanged == 1 &&
		report.Incremental, "the report: %+v", report)
	got := v.background(t, "")
	assert.True(t, got.Status == VerificationFailed && got.Error != "" && got.Report.Unread == 1, got)
	b.must(v.watch.pass(t.Context()))
	assert.Zero(t, testutil.ToFloat64(v.metrics.verifiedAt), "the watch: a pass ended")
	assert.Zero(t, testutil.ToFloat64(v.metrics.differences), "differences")
	b.must(locked.Rollback(t.Context()))

	b.exec("UPDATE balances SET used = used - 1, expired = expired + 1 WHERE meter = 'api_calls'")
	b.must(v.watch.pass(t.Context()))
	found := testutil.ToFloat64(v.metrics.differences)
	locked = lock()
	b.must(v.watch.pass(t.Context()))
	assert.NotZero(t, found, "differences")
	assert.Equal(t, found, testutil.ToFloat64(v.metrics.differences), "differences when a balance could not be read")
	assert.Equal(t, 1.0, testutil.ToFloat64(v.metrics.unread), "balances unread")
	b.must(locked.Rollback(t.Context()))
	b.exec("UPDATE balances SET used = used + 1, expired = expired - 1 WHERE meter = 'api_calls'")
	b.must(v.watch.pass(t.Context()))
	assert.Zero(t, testutil.ToFloat64(v.metrics.differences), "differences at the end")
	assert.Zero(t, testutil.ToFloat64(v.metrics.unread), "unread at the end")
	got = v.background(t, "")
	assert.True(t, got.Status == VerificationClean && got.Error == "", "the verification at the end: %+v", got)
}
