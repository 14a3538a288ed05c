package catalog

import (
	"context"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/lab/testenv"
)

// subjectsOf returns the number of balances with which the tests of large tenants run: 20,000, or the number in the
// environment variable QUOTASVC_TEST_SUBJECTS.
func subjectsOf(t *testing.T) int {
	t.Helper()
	text := os.Getenv("QUOTASVC_TEST_SUBJECTS")
	if text == "" {
		return 20_000
	}
	n, err := strconv.Atoi(text)
	require.NoError(t, err)
	return n
}

// Terms that apply at once are stored in one row, for any number of balances. PatchTenant does not lock balances,
// wait for their locks or write them.
func TestPatchTenant_NowWithManyBalances_TouchesNone(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s := newStore(t)
	seed(t, s)
	put(t, s.PutPlan, Plan{ID: "pro", Allowances: []Allowance{monthly("api_calls", 5)}})
	n := subjectsOf(t)
	testenv.Exec(t, s.db.Pool(), `INSERT INTO balances (tenant_id, meter, subject, plan, plan_version, allowance, period_start, period_end, next_event_at, updated_at)
		SELECT 'acme', 'api_calls', 'user-' || n, 'free', 1, 100, now() - interval '1 hour', now() + interval '10 days', now() + interval '10 days', now()
		FROM generate_series(1, $1) AS n`, n)
	other, err := s.db.Pool().Begin(ctx) // a concurrent debit
	require.NoError(t, err)
	t.Cleanup(func() { _ = other.Rollback(context.Background()) })
	testenv.Exec(t, other, "SELECT 1 FROM balances WHERE tenant_id = 'acme' AND subject = 'user-7' FOR NO KEY UPDATE")
	began := time.Now()
	_, err = s.PatchTenant(ctx, "acme", TenantPatch{Plan: new("pro"), Apply: applyNow, Prorate: true})
	t.Logf("%d balances: %v", n, time.Since(began))
	require.NoError(t, err)
	require.NoError(t, other.Rollback(ctx))
	var versions, locked int
	require.NoError(t, s.db.Pool().QueryRow(ctx, `SELECT count(DISTINCT xmin::text), count(*) FILTER (WHERE xmax::text <> '0' AND subject <> 'user-7') FROM balances`).
		Scan(&versions, &locked))
	require.Equal(t, 1, versions, "balances were written")
	require.Zero(t, locked, "balances were locked")
	var atOnce, prorate bool
	require.NoError(t, s.db.Pool().QueryRow(ctx, "SELECT at_once, prorate FROM tenant_terms ORDER BY effective_at DESC LIMIT 1").Scan(&atOnce, &prorate))
	require.True(t, atOnce && prorate)
	for name, p := range map[string]TenantPatch{
		"unknown word":        {Plan: new("free"), Apply: "later"},
		"prorated later":      {Plan: new("free"), Prorate: true},
		"nothing to apply to": {Apply: applyNow},
	} {
		_, err := s.PatchTenant(ctx, "acme", p)
		require.Equal(t, errcode.InvalidArgument, errcode.Of(err), name)
	}
}
