package catalog

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/quotasvc/quotasvc/internal/period"
	"github.com/quotasvc/quotasvc/internal/testenv"
)

func TestAPlanChangeNowEndsOpenPeriodsAndOneForTheNextPeriodLeavesThemAlone(t *testing.T) {
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
	if _, err := s.PatchTenant(t.Context(), "acme", TenantPatch{Plan: &small, Apply: ApplyNow, Prorate: true}); err != nil {
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
		"nothing to apply to": {Apply: ApplyNow},
	} {
		if _, err := s.PatchTenant(t.Context(), "acme", p); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
