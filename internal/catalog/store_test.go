package catalog

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/kit/body"
	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/kit/listing"
	"github.com/quotasvc/quotasvc/internal/kit/period"
	"github.com/quotasvc/quotasvc/internal/kit/price"
	"github.com/quotasvc/quotasvc/internal/lab/testenv"
	"github.com/quotasvc/quotasvc/internal/store/namedsql"
)

var call = Meter{ID: "api_calls", Unit: "call"}

func monthly(meter string, amount int64) Allowance {
	return Allowance{Meter: meter, Amount: amount, Every: period.Month, Anchor: period.Tenant}
}

func starter(amount int64) Plan {
	return Plan{ID: "starter", Allowances: []Allowance{monthly("api_calls", amount)}}
}

// seed stores a meter, a plan and the tenant acme.
func seed(t *testing.T, s *Store) {
	t.Helper()
	put(t, s.PutMeter, call)
	put(t, s.PutPlan, starter(1000))
	put(t, s.PutTenant, Tenant{ID: "acme", Plan: "starter"})
}

func TestQueries_PrepareOnSchema(t *testing.T) {
	t.Parallel()
	testenv.Statements(t, namedsql.Must(newStore(t).db.Target(), sqlFiles))
}

func TestPutMeter_Unchanged_NoWrite(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	first, created, err := s.PutMeter(t.Context(), call)
	require.NoError(t, err)
	require.True(t, created)
	require.WithinDuration(t, time.Now(), first.CreatedAt, time.Minute)
	require.Equal(t, first.CreatedAt, first.UpdatedAt)

	again, created, err := s.PutMeter(t.Context(), call)
	require.NoError(t, err)
	require.False(t, created)
	require.Equal(t, first, again)

	changed := call
	changed.DenialReplay = true
	third, created, err := s.PutMeter(t.Context(), changed)
	require.NoError(t, err)
	require.False(t, created)
	require.True(t, third.DenialReplay)
	require.Equal(t, first.CreatedAt, third.CreatedAt)
	require.True(t, third.UpdatedAt.After(first.UpdatedAt))

	require.Equal(t, third, get(t, s.Meter, call.ID))
	_, err = s.Meter(t.Context(), "none")
	require.Equal(t, errcode.NotFound, errcode.Of(err))
}

func TestDeleteMeter_InUse_Conflict(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s := newStore(t)
	require.Equal(t, errcode.NotFound, errcode.Of(s.DeleteMeter(ctx, "none")))
	for _, id := range []string{"free", "granted", "overflow", "limited", "plan_limited", "balance"} {
		put(t, s.PutMeter, Meter{ID: id, Unit: "unit"})
	}
	a := monthly("granted", 1)
	a.Overflow = &Overflow{Meter: "overflow", Price: price.Whole(3)}
	put(t, s.PutPlan, Plan{ID: "p", Allowances: []Allowance{a, monthly("overflow", 0)}, Limits: []Limit{
		{Rule: "in-plan", Per: []string{"tenant"}, Kind: "token_bucket", Rate: "5/s", Match: Match{Meter: "plan_limited"}},
	}})
	put(t, s.PutPlan, Plan{ID: "p", Allowances: []Allowance{monthly("free", 1)}}) // now only history refers to the others
	put(t, s.PutPlan, Plan{ID: "p"})
	put(t, s.PutLimit, Limit{Rule: "global", Per: []string{"tenant"}, Kind: "token_bucket", Rate: "5/s", Match: Match{Meter: "limited"}})
	put(t, s.PutMeter, Meter{ID: "unused", Unit: "unit"})
	testenv.Exec(t, s.db.Pool(), "INSERT INTO balances (tenant_id, meter, seq) VALUES ('acme', 'balance', 1)")

	for id, by := range map[string]string{
		"granted": "version 1 of plan p", "overflow": "version 1 of plan p", "free": "version 2 of plan p",
		"limited": "limit global", "plan_limited": "a limit of version 1 of plan p", "balance": "the balance of tenant acme",
	} {
		err := s.DeleteMeter(ctx, id)
		require.Equal(t, errcode.Conflict, errcode.Of(err), id)
		require.ErrorContains(t, err, by)
	}
	require.NoError(t, s.DeleteMeter(ctx, "unused"))
	require.NoError(t, s.DeleteLimit(ctx, "global"))
	require.NoError(t, s.DeleteMeter(ctx, "limited"))
	_, err := s.Meter(ctx, "unused")
	require.Equal(t, errcode.NotFound, errcode.Of(err))
}

func TestPutPlan_VersionOnlyOnOtherGrants(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s := newStore(t)
	put(t, s.PutMeter, call)
	put(t, s.PutMeter, Meter{ID: "credits", Unit: "cent"})
	amount, limit := int64(50), int64(7)
	full := Plan{ID: "full", Allowances: []Allowance{
		{
			Meter: "api_calls", Amount: 1, Every: period.Day, Anchor: period.Calendar,
			Rollover: &Rollover{Min: 1, Max: 10}, Overage: &Overage{Policy: "allow", Cap: &amount, AtPeriodEnd: "preserve"},
			Overflow: &Overflow{Meter: "credits", Price: price.Whole(2)}, PerSubject: &limit,
		},
		{Meter: "credits", Amount: 0, Every: period.Once, Anchor: period.Tenant, Overage: &Overage{Policy: "deny"}},
	}, Limits: []Limit{
		{Rule: "b", Per: []string{"tenant", "route"}, Kind: "token_bucket", Rate: "60/s", Match: Match{Route: "/x"}},
		{Rule: "a", Per: []string{"tenant"}, Kind: "token_bucket", Rate: "100/min", Burst: 7, Cost: 2, Mode: "shadow", OnBackendError: "open"},
	}}
	first, created, err := s.PutPlan(ctx, full)
	require.NoError(t, err)
	require.True(t, created)
	require.EqualValues(t, 1, first.Version)
	require.Equal(t, full.Allowances, first.Allowances)
	require.EqualValues(t, 60, first.Limits[0].Burst, "the burst is the rate's count unless it is given")

	require.Equal(t, first, planOf(t, s, "full", 0), "everything comes back as it was written")

	reordered := full
	reordered.Allowances = []Allowance{full.Allowances[1], full.Allowances[0]}
	reordered.Limits = []Limit{full.Limits[1], full.Limits[0]}
	same, created, err := s.PutPlan(ctx, reordered)
	require.NoError(t, err)
	require.False(t, created)
	require.Equal(t, first, same)

	for version := int32(2); version <= 4; version++ {
		full.Allowances[0].Amount++
		next := put(t, s.PutPlan, full)
		require.Equal(t, version, next.Version)
		require.True(t, next.CreatedAt.After(first.CreatedAt))
	}
	require.Equal(t, first, planOf(t, s, "full", 1), "versions do not change")
	_, err = s.Plan(ctx, "full", 5)
	require.Equal(t, errcode.NotFound, errcode.Of(err))
	_, err = s.Plan(ctx, "none", 0)
	require.Equal(t, errcode.NotFound, errcode.Of(err))
}

func TestPut_ReferencesMustExist(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s := newStore(t)
	seed(t, s)
	a := monthly("none1", 1)
	a.Overflow = &Overflow{Meter: "none2", Price: price.Whole(1)}
	_, _, err := s.PutPlan(ctx, Plan{ID: "p", Allowances: []Allowance{monthly("api_calls", 1), a}})
	require.Equal(t, errcode.NotFound, errcode.Of(err))
	require.Equal(t, []string{"allowances[1].meter", "allowances[1].overflow.meter"}, fieldsIn(t, err))
	_, _, err = s.PutTenant(ctx, Tenant{ID: "x", Plan: "none"})
	require.Equal(t, []string{"plan"}, fieldsIn(t, err))
	_, err = s.PatchTenant(ctx, "acme", TenantPatch{Plan: new("none")})
	require.Equal(t, []string{"plan"}, fieldsIn(t, err))
	_, err = s.PatchTenant(ctx, "none", TenantPatch{})
	require.Equal(t, errcode.TenantNotFound, errcode.Of(err))
	limit := Limit{Rule: "r", Per: []string{"tenant"}, Kind: "token_bucket", Rate: "5/s"}
	limit.Match.Meter = "none"
	_, _, err = s.PutLimit(ctx, limit)
	require.Equal(t, []string{"match.meter"}, fieldsIn(t, err))
	limit.Match = Match{Plan: "none"}
	_, _, err = s.PutLimit(ctx, limit)
	require.Equal(t, []string{"match.plan"}, fieldsIn(t, err))
	limit.Match = Match{Plan: "starter", Meter: "api_calls"}
	put(t, s.PutLimit, limit)
}

type terms struct {
	Plan     string
	Anchor   time.Time
	Timezone string
	Initial  bool
	At       time.Time
}

func termsOf(t *testing.T, s *Store, tenant string) []terms {
	t.Helper()
	rows, err := s.db.Pool().Query(t.Context(),
		"SELECT plan, anchor, timezone, initial, effective_at FROM tenant_terms WHERE tenant_id = $1 ORDER BY effective_at", tenant)
	require.NoError(t, err)
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (terms, error) {
		var x terms
		err := row.Scan(&x.Plan, &x.Anchor, &x.Timezone, &x.Initial, &x.At)
		x.Anchor, x.At = x.Anchor.UTC(), x.At.UTC()
		return x, err
	})
	require.NoError(t, err)
	return list
}

func TestPutTenant_OnlyTermsHaveHistory(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s := newStore(t)
	seed(t, s)
	put(t, s.PutPlan, Plan{ID: "pro"})
	tenant, created, err := s.PutTenant(ctx, Tenant{ID: "x", Plan: "starter"})
	require.NoError(t, err)
	require.True(t, created)
	require.Equal(t, tenant.CreatedAt, tenant.Anchor, "the anchor is when it was made unless it is given")
	require.Equal(t, "UTC", tenant.Timezone)
	require.Equal(t, StatusActive, tenant.Status)
	require.JSONEq(t, "{}", string(tenant.Metadata))
	want := []terms{{"starter", tenant.Anchor, "UTC", true, tenant.CreatedAt}}
	require.Equal(t, want, termsOf(t, s, "x"))

	same, created, err := s.PutTenant(ctx, Tenant{ID: "x", Plan: "starter"})
	require.NoError(t, err)
	require.False(t, created)
	require.Equal(t, tenant, same)

	patched := patch(t, s, "x", TenantPatch{Status: new(StatusSuspended), Metadata: json.RawMessage(`{"b": 1, "a": [1.50]}`)})
	require.True(t, patched.Suspended())
	require.True(t, patched.UpdatedAt.After(tenant.UpdatedAt))
	again := patch(t, s, "x", TenantPatch{Metadata: json.RawMessage(`{"a":[1.5], "b":1}`)})
	require.Equal(t, patched, again, "jsonb takes them for the same")
	require.Equal(t, want, termsOf(t, s, "x"), "neither status nor metadata are terms")

	for i, change := range []TenantPatch{
		{Plan: new("pro"), Apply: applyNow},
		{Timezone: new("Europe/Berlin"), Apply: applyNow},
		{Anchor: new(time.Date(2026, 1, 31, 0, 0, 0, 123456789, time.UTC)), Apply: applyNow},
	} {
		tenant = patch(t, s, "x", change)
		got := termsOf(t, s, "x")
		require.Len(t, got, i+2)
		last := got[i+1]
		require.True(t, last.At.After(got[i].At))
		require.Equal(t, terms{tenant.Plan, tenant.Anchor, tenant.Timezone, false, last.At}, last)
	}
	require.Equal(t, time.Date(2026, 1, 31, 0, 0, 0, 123456000, time.UTC), tenant.Anchor, "PostgreSQL keeps microseconds")
	require.Equal(t, tenant, get(t, s.Tenant, "x"))

	replaced := put(t, s.PutTenant, Tenant{ID: "x", Plan: "pro"})
	require.Equal(t, tenant.CreatedAt, replaced.Anchor, "the plan has no interval for which a change could wait")
	require.Equal(t, StatusActive, replaced.Status, "a PUT replaces")
	require.JSONEq(t, "{}", string(replaced.Metadata))
}

func TestPutTenant_ClockSetBack_TermsRise(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	seed(t, s)
	future := time.Now().Add(time.Hour).UTC().Truncate(time.Microsecond)
	byHand(t, s, "UPDATE plans SET created_at = $1", future)
	byHand(t, s, "UPDATE tenant_terms SET effective_at = $1", future)
	require.Equal(t, future.Add(time.Microsecond), put(t, s.PutPlan, starter(5)).CreatedAt)
	patch(t, s, "acme", TenantPatch{Timezone: new("Asia/Kathmandu"), Apply: applyNow})
	require.Equal(t, future.Add(time.Microsecond), termsOf(t, s, "acme")[1].At)
}

func TestPutTenant_RacingWriters_OneHistory(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	seed(t, s)
	const writers, rounds = 8, 5
	var done sync.WaitGroup
	errs := make(chan error, 3*writers*rounds)
	for w := range writers {
		done.Go(func() {
			for r := range rounds {
				_, _, err := s.PutPlan(context.Background(), starter(int64(w*rounds+r)+1))
				errs <- err
				_, _, err = s.PutTenant(context.Background(), Tenant{ID: fmt.Sprintf("new%d", r), Plan: "starter"})
				errs <- err
				zone := []string{"UTC", "Europe/Berlin"}[w%2]
				_, err = s.PatchTenant(context.Background(), "acme", TenantPatch{Timezone: &zone, Apply: applyNow})
				errs <- err
			}
		})
	}
	done.Wait()
	close(errs)
	for err := range errs {
		require.NoError(t, err)
	}
	newest := planOf(t, s, "starter", 0)
	require.EqualValues(t, writers*rounds+1, newest.Version)
	var last time.Time
	for v := int32(1); v <= newest.Version; v++ {
		p := planOf(t, s, "starter", v)
		require.True(t, p.CreatedAt.After(last))
		last = p.CreatedAt
	}
	history := termsOf(t, s, "acme")
	for i := 1; i < len(history); i++ {
		require.True(t, history[i].At.After(history[i-1].At), "the rows are in the order of the changes")
	}
	require.Len(t, termsOf(t, s, "new0"), 1)
	requireChains(t, s)
}

func TestList_PagesInOrder(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s := newStore(t)
	seed(t, s)
	ids := []string{"B", "a", "a-1", "a.1", "a1", "api_calls", "b"} // in the order of their bytes
	for _, id := range ids {
		put(t, s.PutMeter, Meter{ID: id, Unit: "u"})
		put(t, s.PutPlan, Plan{ID: id})
		put(t, s.PutPlan, Plan{ID: id, Allowances: []Allowance{monthly("api_calls", 3)}})
		put(t, s.PutTenant, Tenant{ID: id, Plan: "starter"})
		put(t, s.PutLimit, Limit{Rule: id, Per: []string{"tenant"}, Kind: "token_bucket", Rate: "5/s"})
	}
	page := listing.Query{Limit: 3}
	var got []string
	for {
		list, err := s.ListMeters(ctx, page)
		require.NoError(t, err)
		for _, m := range list.Items {
			got = append(got, m.ID)
		}
		if page.Cursor = list.NextCursor; page.Cursor == "" {
			break
		}
	}
	require.Equal(t, ids, got)

	plans, err := s.ListPlans(ctx, listing.Query{Limit: 7})
	require.NoError(t, err)
	require.Len(t, plans.Items, 7)
	require.NotEmpty(t, plans.NextCursor)
	require.EqualValues(t, 2, plans.Items[0].Version, "the newest versions")
	require.Len(t, plans.Items[0].Allowances, 1)
	plans, err = s.ListPlans(ctx, listing.Query{Limit: 1, Cursor: plans.NextCursor})
	require.NoError(t, err)
	require.Equal(t, "starter", plans.Items[0].ID)
	require.Empty(t, plans.NextCursor, "an exactly full last page is the last")
	tenants, err := s.ListTenants(ctx, listing.Query{Limit: listing.Max})
	require.NoError(t, err)
	require.Len(t, tenants.Items, 8)
	limits, err := s.ListLimits(ctx, listing.Query{Limit: 2})
	require.NoError(t, err)
	require.Equal(t, []string{"B", "a"}, []string{limits.Items[0].Rule, limits.Items[1].Rule})

	for _, bad := range []listing.Query{{Limit: 0}, {Limit: listing.Max + 1}, {Limit: 1, Cursor: "%"}, {Limit: 1, Cursor: "AAAA"}} {
		_, err := s.ListTenants(ctx, bad)
		require.Equal(t, errcode.InvalidArgument, errcode.Of(err))
	}
}

func TestPutLimit_CheckLimitRefuses_NotStored(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s := openStore(t, testenv.Postgres(t), StoreConfig{CheckLimit: func(l *Limit) error {
		if strings.HasPrefix(l.Rate, "9") {
			return &body.Fault{Field: "rate", Message: fmt.Sprintf("is too fast for a burst of %d", l.Burst)}
		}
		return nil
	}})
	fast := Limit{Rule: "r", Per: []string{"tenant"}, Kind: "token_bucket", Rate: "99/s"}
	_, _, err := s.PutLimit(ctx, fast)
	require.Equal(t, errcode.InvalidArgument, errcode.Of(err))
	require.ErrorContains(t, err, "rate is too fast for a burst of 99")
	_, _, err = s.PutPlan(ctx, Plan{ID: "p", Limits: []Limit{{Rule: "ok", Per: []string{"tenant"}, Kind: "token_bucket", Rate: "1/s"}, fast}})
	require.Equal(t, []string{"limits[1].rate"}, fieldsIn(t, err))
	_, err = s.Limit(ctx, "r")
	require.Equal(t, errcode.NotFound, errcode.Of(err))
}

func TestStore_NoSchema_ErrorNamesCommand(t *testing.T) {
	t.Parallel()
	s := openStore(t, testenv.PostgresEmpty(t), StoreConfig{})
	c := New(s, Config{})
	err := c.Start(t.Context())
	require.ErrorContains(t, err, "quotasvc migrate up")
	require.NoError(t, c.Stop(t.Context()))
}
