package catalog

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/catalog/feature"
	"github.com/quotasvc/quotasvc/internal/kit/clock"
	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/kit/period"
	"github.com/quotasvc/quotasvc/internal/lab/testenv"
	"github.com/quotasvc/quotasvc/internal/store/pgstore"
)

// instance is a catalogue with a clock that a test moves.
type instance struct {
	*Catalog

	clock *clock.Clock
}

// instances runs two catalogues on one database. They have the plan "both" (months and years), the plan "lean" (months)
// and the plan "flat" (no interval), and the tenant acme with the plan "both".
func instances(t *testing.T) (here, there instance) {
	t.Helper()
	url := testenv.Postgres(t)
	start := func() instance {
		agreed := clock.New(clock.Config{})
		c := New(openStoreWith(t, url, StoreConfig{}, pgstore.Config{Clock: agreed}), Config{})
		require.NoError(t, c.Start(t.Context()))
		testenv.StopAtEnd(t, c.Stop)
		return instance{c, agreed}
	}
	here, there = start(), start()
	for _, id := range []string{"calls", "credits"} {
		put(t, here.PutMeter, Meter{ID: id, Unit: "unit"})
	}
	yearly := monthly("credits", 20)
	yearly.Every = period.Year
	put(t, here.PutPlan, Plan{ID: "both", Allowances: []Allowance{monthly("calls", 10), yearly}})
	put(t, here.PutPlan, Plan{ID: "lean", Allowances: []Allowance{monthly("calls", 5)}})
	put(t, here.PutPlan, Plan{ID: "flat"})
	put(t, here.PutTenant, Tenant{ID: "acme", Plan: "both"})
	return here, there
}

// end returns the end of the tenant's nominal period with the given interval.
func end(t *testing.T, acme *Tenant, every period.Interval, anchor period.AnchorKind) time.Time {
	t.Helper()
	at, err := acme.nominalEnd(&Allowance{Every: every, Anchor: anchor}, time.Now())
	require.NoError(t, err)
	return at
}

// told returns the types of the events about changes of plans, in their order.
func told(t *testing.T, s *Store) (list []string) {
	t.Helper()
	rows, err := s.db.Pool().Query(
		t.Context(),
		"SELECT type || ' ' || (data ->> 'plan') FROM events WHERE type LIKE 'plan.%' ORDER BY at, type DESC",
	)
	require.NoError(t, err)
	for rows.Next() {
		var text string
		require.NoError(t, rows.Scan(&text))
		list = append(list, text)
	}
	require.NoError(t, rows.Err())
	return list
}

func TestPending_WaitsForTheLongestInterval(t *testing.T) {
	t.Parallel()
	here, _ := instances(t)
	anchor := monthly("", 0).Anchor
	acme := get(t, here.Store.Tenant, "acme")
	lean := patch(t, here.Store, "acme", TenantPatch{Plan: new("lean")})
	require.Equal(t, "both", lean.Plan)
	require.Equal(t, "lean", lean.Pending.Plan)
	require.Equal(t, end(t, &acme, period.Year, anchor), lean.Pending.From)
	require.Equal(t, lean, get(t, here.Store.Tenant, "acme"))
	require.NoError(t, here.DeletePending(t.Context(), "acme"))

	own := patch(t, here.Store, "acme", TenantPatch{Overrides: map[string]*int64{"calls": new(int64(7))}})
	require.Equal(t, end(t, &acme, period.Month, anchor), own.Pending.From, "overrides alone wait for their meters")
	require.NoError(t, here.DeletePending(t.Context(), "acme"))

	// A stored period counts, whatever the schedule says.
	until := time.Now().Add(500 * 24 * time.Hour).UTC().Truncate(time.Microsecond)
	byHand(
		t,
		here.Store,
		`INSERT INTO balances (tenant_id, meter, subject, seq, period_start, period_end, next_event_at, updated_at)
		VALUES ('acme', 'credits', '', 0, now() - interval '1 day', $1, $1, now())`,
		until,
	)
	lean = patch(t, here.Store, "acme", TenantPatch{Plan: new("lean")})
	require.Equal(t, until, lean.Pending.From)
	require.NoError(t, here.DeletePending(t.Context(), "acme"))

	flat := patch(t, here.Store, "acme", TenantPatch{Plan: new("flat"), Apply: applyNow})
	require.Nil(t, flat.Pending)
	change, err := here.PatchTenant(t.Context(), "acme", TenantPatch{Plan: new("lean")})
	require.NoError(t, err)
	require.Nil(t, change.After.Pending)
	require.Equal(t, "lean", change.After.Plan, "nothing to wait for")
	require.Equal(t, applyNow, change.Apply)
}

func TestPending_EffectiveAt_Bounds(t *testing.T) {
	t.Parallel()
	here, _ := instances(t)
	for _, at := range []time.Time{time.Now().Add(-time.Second), time.Now().Add(MaxAhead + time.Hour)} {
		_, err := here.PatchTenant(t.Context(), "acme", TenantPatch{Plan: new("lean"), EffectiveAt: &at})
		require.Equal(t, []string{"effective_at"}, fieldsIn(t, err))
		require.ErrorContains(t, err, "at most 400 days ahead")
	}
	at := time.Now().Add(MaxAhead - time.Hour)
	require.Equal(
		t,
		[]string{"effective_at"},
		fieldsIn(t, validate(&TenantPatch{Plan: new("lean"), EffectiveAt: &at, Apply: applyNow})),
	)
	acme := patch(t, here.Store, "acme", TenantPatch{Plan: new("lean"), EffectiveAt: &at})
	require.Equal(t, applyAt, acme.Pending.Apply)
	require.Equal(t, period.Micros(at), acme.Pending.From)
}

func TestPending_OneAtATime_NowLeavesIt(t *testing.T) {
	t.Parallel()
	here, _ := instances(t)
	ctx := t.Context()
	patch(t, here.Store, "acme", TenantPatch{Plan: new("lean"), Overrides: map[string]*int64{"calls": new(int64(3))}})
	_, err := here.PatchTenant(ctx, "acme", TenantPatch{Timezone: new("Europe/Berlin")})
	require.Equal(t, CodeChangePending, errcode.Of(err))

	now := patch(t, here.Store, "acme", TenantPatch{
		Timezone: new(
			"Europe/Berlin",
		), Overrides: map[string]*int64{"credits": new(int64(9)), "calls": new(int64(8))}, Apply: applyNow,
	})
	require.Equal(t, "both", now.Plan)
	require.Equal(t, map[string]int64{"calls": 8, "credits": 9}, now.Overrides)
	require.Equal(t, "lean", now.Pending.Plan)
	require.Equal(t, "Europe/Berlin", now.Pending.Timezone, "what the pending change did not name follows")
	require.Equal(t, map[string]int64{"calls": 3, "credits": 9}, now.Pending.Overrides, "what it named stays")
	features := patch(
		t,
		here.Store,
		"acme",
		TenantPatch{Features: map[string]*feature.Value{"sso": new(feature.Switch(true))}},
	)
	require.True(t, features.Features["sso"].On && features.Pending.Features["sso"].On, "features alone change at once")
	require.Equal(t, features, get(t, here.Store.Tenant, "acme"))

	require.NoError(t, here.DeletePending(ctx, "acme"))
	require.Equal(t, errcode.NotFound, errcode.Of(here.DeletePending(ctx, "acme")))
	require.Equal(t, errcode.TenantNotFound, errcode.Of(here.DeletePending(ctx, "none")))
	require.Nil(t, get(t, here.Store.Tenant, "acme").Pending)
	require.Equal(t, []string{"plan.change_scheduled lean", "plan.change_canceled lean"}, told(t, here.Store))
}

// Both instances follow a pending change at its instant without a read. The change is told once, whoever stores it.
func TestPending_TakesEffectOnTwoInstances_ToldOnce(t *testing.T) {
	t.Parallel()
	here, there := instances(t)
	ctx := t.Context()
	from := patch(t, here.Store, "acme", TenantPatch{Plan: new("lean"), Reason: "downgrade"}).Pending.From
	both := []instance{here, there}
	for _, i := range both {
		testenv.Eventually(t, func() bool { acme, err := i.Tenant(ctx, "acme"); return err == nil && acme.next != nil })
		i.clock.Advance(time.Until(from) - time.Minute)
		require.NoError(t, i.AdvanceTenants(ctx))
		acme := get(t, i.Tenant, "acme")
		require.Equal(t, "both", acme.Plan)
	}
	require.Equal(t, []string{"plan.change_scheduled lean"}, told(t, here.Store))
	for _, i := range both {
		i.clock.Advance(2 * time.Minute)
		acme := get(t, i.Tenant, "acme")
		require.Equal(t, "lean", acme.Plan)
		stored := get(t, i.Store.Tenant, "acme")
		require.Equal(t, "lean", stored.Plan)
		require.Nil(t, stored.Pending)
		require.EqualValues(t, 3, stored.Version)
		plans, err := i.TenantPlans(ctx, []string{"acme"})
		require.NoError(t, err)
		require.Equal(t, []TenantPlan{{ID: "acme", Plan: "lean", Timezone: "UTC"}}, plans)
	}
	done := make(chan error, 2)
	for _, i := range both {
		go func() { done <- i.AdvanceTenants(context.WithoutCancel(ctx)) }()
	}
	require.NoError(t, <-done)
	require.NoError(t, <-done)
	require.Equal(t, []string{"plan.change_scheduled lean", "plan.changed lean"}, told(t, here.Store))
	require.EqualValues(t, 3, get(t, here.Store.Tenant, "acme").Version)
}

func TestPatchTenant_SameKey_DoesNothingTwice(t *testing.T) {
	t.Parallel()
	here, _ := instances(t)
	p := TenantPatch{Plan: new("lean"), Metadata: json.RawMessage(`{"a":1}`), Key: "k"}
	first, err := here.PatchTenant(t.Context(), "acme", p)
	require.NoError(t, err)
	again, err := here.PatchTenant(t.Context(), "acme", p)
	require.NoError(t, err)
	require.True(t, again.Replayed)
	again.Replayed = false
	first.After.Pending.asked = askedTerms{}
	first.Before.Metadata, first.After.Metadata = again.Before.Metadata, again.After.Metadata
	require.Equal(t, first, again)
	require.NoError(t, here.DeletePending(t.Context(), "acme"))
	_, err = here.PatchTenant(t.Context(), "acme", p)
	require.NoError(t, err)
	require.Nil(t, get(t, here.Store.Tenant, "acme").Pending, "a late retry schedules it again")
	p.Plan = new("flat")
	_, err = here.PatchTenant(t.Context(), "acme", p)
	require.Equal(t, errcode.IdempotencyKeyReused, errcode.Of(err))

	for _, usage := range []string{usageReset, usageAdd} {
		p := TenantPatch{Usage: usage, Apply: applyNow, Reason: "sold anew", Key: usage}
		for range 2 {
			patch(t, here.Store, "acme", p)
		}
		require.Equal(t, []string{"reason"}, fieldsIn(t, validate(&TenantPatch{Usage: usageReset, Apply: applyNow})))
	}
	require.Len(t, historyOf(t, here.Store, "acme"), 3, "one row each, also on the same plan")
}
