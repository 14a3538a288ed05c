package catalog

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/period"
	"github.com/quotasvc/quotasvc/internal/testenv"
)

func TestPatchTenant_Now_EndsOpenPeriods(t *testing.T) {
	t.Parallel()
	url := testenv.Postgres(t)
	s := openStore(t, url, StoreConfig{})
	put(t, s.PutMeter, Meter{ID: "calls", Unit: "call"})
	for _, plan := range []string{"small", "large"} {
		put(t, s.PutPlan, Plan{ID: plan, Allowances: []Allowance{{Meter: "calls", Amount: 10, Every: period.Month, Anchor: period.Calendar}}})
	}
	put(t, s.PutTenant, Tenant{ID: "acme", Plan: "small"})
	db, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close(context.Background()) })
	next := time.Now().Add(240 * time.Hour).UTC().Truncate(time.Microsecond)
	if _, err := db.Exec(t.Context(), `INSERT INTO balances (tenant_id, meter, period_start, period_end, next_event_at, updated_at)
		VALUES ('acme', 'calls', now() - interval '1 hour', $1, $1, now())`, next); err != nil {
		t.Fatal(err)
	}
	due := func() (at time.Time) {
		t.Helper()
		if err := db.QueryRow(t.Context(), "SELECT next_event_at FROM balances").Scan(&at); err != nil {
			t.Fatal(err)
		}
		return at.UTC()
	}
	large, small := "large", "small"
	if _, err := s.PatchTenant(t.Context(), "acme", TenantPatch{Plan: &large}); err != nil {
		t.Fatal(err)
	}
	if got := due(); !got.Equal(next) {
		t.Errorf("a change for the next period made the balance due at %s", got)
	}
	if _, err := s.PatchTenant(t.Context(), "acme", TenantPatch{Plan: &small, Apply: applyNow, Prorate: true}); err != nil {
		t.Fatal(err)
	}
	var at, updated time.Time
	var immediate, prorate bool
	err = db.QueryRow(t.Context(), `SELECT t.effective_at, t.immediate, t.prorate, b.updated_at
		FROM tenant_terms t JOIN balances b USING (tenant_id) ORDER BY t.effective_at DESC LIMIT 1`).Scan(&at, &immediate, &prorate, &updated)
	if err != nil || !immediate || !prorate || !at.After(updated) || !due().Equal(at.UTC()) {
		t.Errorf("terms at %s (immediate %t, prorated %t), balance of %s due at %s (%v)", at, immediate, prorate, updated, due(), err)
	}
	for name, p := range map[string]TenantPatch{
		"unknown word":        {Plan: &large, Apply: "later"},
		"prorated later":      {Plan: &large, Prorate: true},
		"nothing to apply to": {Apply: applyNow},
	} {
		if _, err := s.PatchTenant(t.Context(), "acme", p); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// A balance that is opened while terms change at once is opened under the old or the new terms, and never misses the change.
func TestPatchTenant_Now_WaitsForNewBalances(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s := newStore(t)
	seed(t, s)
	put(t, s.PutPlan, Plan{ID: "pro", Allowances: []Allowance{monthly("api_calls", 5)}})
	maker, err := s.pool.Begin(ctx)
	require.NoError(t, err)
	t.Cleanup(func() { _ = maker.Rollback(context.Background()) })
	_, err = maker.Exec(ctx, `INSERT INTO balances (tenant_id, meter, period_start, period_end, next_event_at, updated_at)
		SELECT tenant_id, 'api_calls', clock_timestamp(), clock_timestamp() + interval '1 day', clock_timestamp() + interval '1 day', clock_timestamp()
		FROM tenants WHERE tenant_id = 'acme' FOR KEY SHARE`)
	require.NoError(t, err)
	patched := make(chan error, 1)
	go func() {
		_, err := s.PatchTenant(ctx, "acme", TenantPatch{Plan: ptr("pro"), Apply: applyNow})
		patched <- err
	}()
	require.Eventually(t, func() bool {
		var waiting bool
		err := s.pool.QueryRow(ctx, `SELECT count(*) > 0 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`).Scan(&waiting)
		return err == nil && waiting
	}, soon, 5*time.Millisecond)
	require.NoError(t, maker.Commit(ctx))
	require.NoError(t, <-patched)
	var due, terms time.Time
	require.NoError(t, s.pool.QueryRow(ctx, `SELECT next_event_at, (SELECT max(effective_at) FROM tenant_terms) FROM balances`).Scan(&due, &terms))
	require.Equal(t, terms, due)
}
