package gauge

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/quotasvc/quotasvc/internal/catalog"
	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/lab/testenv"
	"github.com/quotasvc/quotasvc/internal/ledger/audit"
	"github.com/quotasvc/quotasvc/internal/store/namedsql"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// bundle is a store and a catalogue with the gauge seats. The limit of the tenant is 3 on the plan free and 10 on the
// plan pro. The limit of each subject is 2.
type bundle struct {
	*Store
	catalog *catalog.Store
	byHand  *pgxpool.Pool
	serial  atomic.Int64
}

func newBundle(t testing.TB) *bundle {
	t.Helper()
	url := testenv.Postgres(t)
	b := &bundle{byHand: testenv.Pool(t, url)}
	db := testenv.Store(testenv.Pool(t, testenv.AsService(url)))
	b.catalog = catalog.NewStore(db, catalog.StoreConfig{})
	b.Store = NewStore(db)
	testenv.Put(t, b.catalog.PutMeter, catalog.Meter{ID: "seats", Unit: "seat", Kind: catalog.KindGauge})
	for plan, seats := range map[string]int64{"free": 3, "pro": 10} {
		testenv.Put(t, b.catalog.PutPlan, catalog.Plan{ID: plan, Allowances: []catalog.Allowance{{Meter: "seats", Amount: seats, PerSubject: new(int64(2))}}})
	}
	testenv.Put(t, b.catalog.PutPlan, catalog.Plan{ID: "none"})
	b.join(t, "acme", "free")
	return b
}

func (b *bundle) join(t testing.TB, tenant, plan string) {
	t.Helper()
	testenv.Put(t, b.catalog.PutTenant, catalog.Tenant{ID: tenant, Plan: plan})
	// A tenant that exists changes its plan now, not at the end of its billing period.
	if stored, err := b.catalog.Tenant(t.Context(), tenant); err == nil && stored.Pending != nil {
		_, err := b.catalog.PatchTenant(t.Context(), tenant, catalog.TenantPatch{Plan: &plan, Apply: "now"})
		require.NoError(t, err)
	}
}

func (b *bundle) key() string { return fmt.Sprint("k", b.serial.Add(1)) }

func (b *bundle) set(value int64) (State, error) {
	return b.Set(context.Background(), Change{Key: seats, OperationID: b.key(), Value: &value})
}

func (b *bundle) add(delta int64) (State, error) {
	return b.Set(context.Background(), Change{Key: seats, OperationID: b.key(), Delta: delta})
}

var seats = Key{Tenant: "acme", Meter: "seats"}

// verify verifies the whole database and returns the differences.
func (b *bundle) verify(t testing.TB) []string {
	t.Helper()
	auditor := audit.New(b.byHand, namedsql.Target(testenv.OnCitus()))
	report, err := auditor.Verify(context.Background(), audit.Options{ReadOnly: true})
	require.NoError(t, err)
	var found []string
	for _, d := range report.Differences {
		found = append(found, fmt.Sprintf("%s/%s: %s %s %s", d.Tenant, d.Meter, d.What, d.Want, d.Got))
	}
	return found
}

func TestSet_PlanChange_KeepsTheValue_WhichCanOnlyFall(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	ctx := t.Context()
	state, err := b.Get(ctx, seats)
	require.NoError(t, err)
	require.Equal(t, State{Key: seats, Limit: 3}, state)
	state, err = b.set(3)
	require.NoError(t, err)
	require.EqualValues(t, []int64{3, 3, 0, 0}, []int64{state.Value, state.Limit, state.Remaining(), state.Over()})
	_, err = b.add(1)
	require.Equal(t, CodeLimit, errcode.Of(err))
	require.ErrorContains(t, err, `meter "seats" may be at most 3; it is 3 and stays so, not 4`)

	b.join(t, "acme", "pro")
	for range 7 {
		_, err = b.add(1)
		require.NoError(t, err)
	}
	_, err = b.set(11)
	require.Equal(t, CodeLimit, errcode.Of(err))
	for range 3 { // plan changes back and forth create no seats
		b.join(t, "acme", "free")
		state, err = b.Get(ctx, seats)
		require.NoError(t, err)
		require.EqualValues(t, []int64{10, 3, 0, 7}, []int64{state.Value, state.Limit, state.Remaining(), state.Over()})
		b.join(t, "acme", "pro")
	}
	b.join(t, "acme", "free")
	_, err = b.add(1)
	require.Equal(t, CodeLimit, errcode.Of(err))
	_, err = b.set(10)
	require.NoError(t, err, "the value that it has")
	_, err = b.add(-1)
	require.NoError(t, err)
	b.join(t, "acme", "none")
	_, err = b.set(9)
	require.NoError(t, err)
	state, err = b.add(-9)
	require.NoError(t, err)
	require.Zero(t, state.Value)
	_, err = b.set(0)
	require.Equal(t, errcode.MeterNotInPlan, errcode.Of(err))
	require.Empty(t, b.verify(t))
}

func TestSet_BadInput_LeavesNothing(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	ctx := t.Context()
	testenv.Put(t, b.catalog.PutMeter, catalog.Meter{ID: "calls", Unit: "call"})
	n := func(n int64) *int64 { return &n }
	for name, tc := range map[string]struct {
		change Change
		code   errcode.Code
	}{
		"neither":           {Change{Key: seats, OperationID: "a"}, errcode.InvalidArgument},
		"both":              {Change{Key: seats, OperationID: "a", Value: n(1), Delta: 1}, errcode.InvalidArgument},
		"below 0":           {Change{Key: seats, OperationID: "a", Delta: -1}, errcode.InvalidArgument},
		"a value below 0":   {Change{Key: seats, OperationID: "a", Value: n(-1)}, errcode.InvalidArgument},
		"too large":         {Change{Key: seats, OperationID: "a", Value: n(1 << 53)}, errcode.InvalidArgument},
		"the largest":       {Change{Key: seats, OperationID: "a", Value: n(1<<53 - 1)}, CodeLimit},
		"the largest delta": {Change{Key: seats, OperationID: "a", Delta: 1<<53 - 1}, CodeLimit},
		"no key":            {Change{Key: seats, Value: n(1)}, errcode.InvalidArgument},
		"no tenant":         {Change{Key: Key{"nobody", "seats", ""}, OperationID: "a", Value: n(1)}, errcode.TenantNotFound},
		"no meter":          {Change{Key: Key{"acme", "none", ""}, OperationID: "a", Value: n(1)}, errcode.NotFound},
		"a counter":         {Change{Key: Key{"acme", "calls", ""}, OperationID: "a", Value: n(1)}, errcode.InvalidArgument},
		"a subject's cap":   {Change{Key: Key{"acme", "seats", "u1"}, OperationID: "a", Value: n(3)}, CodeLimit},
		"a bad subject":     {Change{Key: Key{"acme", "seats", "<>"}, OperationID: "a", Value: n(1)}, errcode.InvalidArgument},
	} {
		_, err := b.Set(ctx, tc.change)
		require.Equal(t, tc.code, errcode.Of(err), "%s: %v", name, err)
	}
	state, err := b.Set(ctx, Change{Key: seats, Value: n(2), DryRun: true})
	require.NoError(t, err)
	require.EqualValues(t, 2, state.Value)
	_, err = b.catalog.PatchTenant(ctx, "acme", catalog.TenantPatch{Status: new("suspended")})
	require.NoError(t, err)
	_, err = b.set(1)
	require.Equal(t, errcode.TenantSuspended, errcode.Of(err))
	var rows int
	require.NoError(t, b.byHand.QueryRow(ctx, "SELECT (SELECT count(*) FROM gauges) + (SELECT count(*) FROM gauge_entries)").Scan(&rows))
	require.Zero(t, rows)
}

func TestSet_ParallelAndRepeated_CountsEachKeyOnce(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	ctx := t.Context()
	b.join(t, "acme", "pro")
	var changes sync.WaitGroup
	var done, refused, replayed atomic.Int64
	for i := range 60 { // 20 keys, each sent three times at once; the limit leaves room for 10 changes
		changes.Go(func() {
			state, err := b.Set(ctx, Change{Key: seats, OperationID: fmt.Sprint("p", i%20), Delta: 1})
			switch {
			case errcode.Of(err) == CodeLimit:
				refused.Add(1)
			case err != nil:
				t.Error(err)
			case state.Replayed:
				replayed.Add(1)
			default:
				done.Add(1)
			}
		})
	}
	changes.Wait()
	state, err := b.Get(ctx, seats)
	require.NoError(t, err)
	require.EqualValues(t, 10, state.Value)
	require.EqualValues(t, 10, done.Load())
	require.EqualValues(t, 60, done.Load()+refused.Load()+replayed.Load())
	entries, err := b.Entries(ctx, seats, 1<<62, 500)
	require.NoError(t, err)
	require.Len(t, entries, 10)
	_, err = b.Set(ctx, Change{Key: seats, OperationID: entries[0].OperationID, Delta: -1})
	require.Equal(t, errcode.IdempotencyKeyReused, errcode.Of(err))
	require.Empty(t, b.verify(t))
}

// For random requests and plan changes, a value never rises above its limit and agrees with its entries. A change of
// the plan does not change the value.
func TestGauge_Programs_AgreeWithModel(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	tenants := atomic.Int64{}
	rapid.Check(t, func(rt *rapid.T) {
		ctx := context.Background()
		k := Key{Tenant: fmt.Sprint("t", tenants.Add(1)), Meter: "seats"}
		limits := map[string]int64{"free": 3, "pro": 10, "none": 0}
		plan, value := "free", int64(0)
		b.join(t, k.Tenant, plan)
		for range rapid.IntRange(1, 12).Draw(rt, "steps") {
			if rapid.IntRange(0, 3).Draw(rt, "change plan?") == 0 {
				plan = rapid.SampledFrom([]string{"free", "pro", "none"}).Draw(rt, "plan")
				b.join(t, k.Tenant, plan)
			}
			c, want := Change{Key: k, OperationID: b.key(), DryRun: rapid.IntRange(0, 5).Draw(rt, "dry?") == 0}, int64(0)
			if rapid.Bool().Draw(rt, "value?") {
				want = rapid.Int64Range(0, 12).Draw(rt, "value")
				c.Value = &want
			} else {
				c.Delta = rapid.SampledFrom([]int64{-9, -2, -1, 1, 2, 9}).Draw(rt, "delta")
				want = value + c.Delta
			}
			code := errcode.Code("")
			switch {
			case plan == "none" && value == 0:
				code = errcode.MeterNotInPlan
			case want < 0:
				code = errcode.InvalidArgument
			case want > limits[plan] && want > value:
				code = CodeLimit
			}
			state, err := b.Set(ctx, c)
			if code != "" {
				require.True(rt, errcode.Of(err) == code, "%d on %s to %d: %v, not %s", value, plan, want, err, code)
			} else if err != nil || state.Value != want || state.Before != value {
				rt.Fatalf("%d on %s to %d: %+v %v", value, plan, want, state, err)
			} else if !c.DryRun {
				value = want
			}
			if now, err := b.Get(ctx, k); err == nil && (now.Value != value || now.Limit != limits[plan] || now.Value+now.Remaining() < now.Limit) {
				rt.Fatalf("%+v, not %d of %d", now, value, limits[plan])
			}
		}
	})
	require.Empty(t, b.verify(t))
}

func TestVerify_FindsWhatWasChangedByHand(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	for i := range int64(3) {
		_, err := b.set(i + 1)
		require.NoError(t, err)
	}
	require.Empty(t, b.verify(t))
	for _, tc := range []struct{ change, undo, what string }{
		{"UPDATE gauges SET value = 2", "UPDATE gauges SET value = 3", "value of a gauge 3 2"},
		{"UPDATE gauges SET seq = 4", "UPDATE gauges SET seq = 3", "newest number of a gauge 3 4"},
		{"UPDATE gauge_entries SET after = 1 WHERE seq = 2", "UPDATE gauge_entries SET after = 2 WHERE seq = 2", "gauge before entry 3 1 2"},
		{"UPDATE gauge_entries SET allowed = 1 WHERE seq = 2", "UPDATE gauge_entries SET allowed = 3 WHERE seq = 2", "limit of gauge entry 2 1 2"},
		{"UPDATE gauge_entries SET seq = 7 WHERE seq = 3", "UPDATE gauge_entries SET seq = 3 WHERE seq = 7", "number of a gauge entry 3 7"},
		{"DELETE FROM gauge_entries", "", "value of a gauge 0 3"},
	} {
		testenv.Exec(t, b.byHand, tc.change)
		require.Contains(t, b.verify(t), "acme/seats: "+tc.what, tc.change)
		if tc.undo != "" {
			testenv.Exec(t, b.byHand, tc.undo)
		}
	}
}
