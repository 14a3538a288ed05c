package catalog

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/kit/lane"
	"github.com/quotasvc/quotasvc/internal/lab/testenv"
	"github.com/quotasvc/quotasvc/internal/store/pgstore"
)

// cacheRig is a started cache with a fake listener, and with a clock that the test advances.
type cacheRig struct {
	*tenantCache
	store   *Store
	clock   atomic.Int64
	hearing atomic.Bool
	cause   atomic.Pointer[error] // why PostgreSQL does not answer; nil: it answers
}

func newCacheRig(t *testing.T, size int) *cacheRig {
	t.Helper()
	r := &cacheRig{}
	r.store = openStoreWith(t, testenv.Postgres(t), StoreConfig{}, pgstore.Config{Away: func() error {
		if cause := r.cause.Load(); cause != nil {
			return *cause
		}
		return nil
	}})
	r.clock.Store(time.Now().UnixNano())
	r.hearing.Store(true)
	cfg := Config{Tenants: size, LoadTimeout: testenv.Patience, Now: func() time.Time { return time.Unix(0, r.clock.Load()) }}
	r.tenantCache = newTenantCache(r.store, cfg, newMetrics(nil, nil), (*hearing)(&r.hearing))
	r.start()
	t.Cleanup(func() { require.NoError(t, r.stop(context.Background())) })
	seed(t, r.store)
	return r
}

func (r *cacheRig) pass(d time.Duration) { r.clock.Add(int64(d)) }

// has reports whether a tenant is in memory.
func (r *cacheRig) has(id string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, known := r.entries.Peek(id)
	return known
}

// zone returns the time zone of the tenant acme from the cache.
func (r *cacheRig) zone(t *testing.T) string {
	t.Helper()
	acme, err := r.get(t.Context(), "acme")
	require.NoError(t, err)
	return acme.Timezone
}

// change changes the time zone of acme without a notification to the cache.
func (r *cacheRig) change(t *testing.T, zone string) {
	t.Helper()
	patch(t, r.store, "acme", TenantPatch{Timezone: &zone, Apply: applyNow})
}

func TestTenantCache_FreshUntilNotified(t *testing.T) {
	t.Parallel()
	r := newCacheRig(t, 10)
	require.Equal(t, "UTC", r.zone(t))
	r.change(t, "Asia/Kathmandu")
	r.pass(heardAge - time.Second)
	require.Equal(t, "UTC", r.zone(t))
	r.drop("acme")
	require.Equal(t, "Asia/Kathmandu", r.zone(t))
	r.change(t, "UTC")
	r.pass(heardAge)
	require.Equal(t, "UTC", r.zone(t), "the net under announcements")
}

func TestTenantCache_NotListening_FreshForASecond(t *testing.T) {
	t.Parallel()
	r := newCacheRig(t, 10)
	require.Equal(t, "UTC", r.zone(t))
	r.change(t, "Asia/Kathmandu")
	r.hearing.Store(false)
	r.pass(unheardAge - time.Millisecond)
	require.Equal(t, "UTC", r.zone(t))
	r.pass(time.Millisecond)
	require.Equal(t, "Asia/Kathmandu", r.zone(t))
}

func TestTenantCache_Reconnect_ReadsAgain(t *testing.T) {
	t.Parallel()
	r := newCacheRig(t, 10)
	require.Equal(t, "UTC", r.zone(t))
	r.change(t, "Asia/Kathmandu")
	r.pass(unheardAge)
	r.invalidateAll()
	r.pass(1)
	require.Equal(t, "Asia/Kathmandu", r.zone(t))
	r.change(t, "UTC")
	r.pass(unheardAge)
	require.Equal(t, "Asia/Kathmandu", r.zone(t), "what was read since is trusted")
}

// A file may have more changes than can be announced by name. Then the announcement covers the whole catalogue: even
// a tenant that was just read is read again.
func TestTenantCache_EverythingChanged_NothingIsFresh(t *testing.T) {
	t.Parallel()
	r := newCacheRig(t, 10)
	_, err := r.get(t.Context(), "new")
	require.Equal(t, errcode.TenantNotFound, errcode.Of(err))
	require.Equal(t, "UTC", r.zone(t))
	put(t, r.store.PutTenant, Tenant{ID: "new", Plan: "starter"})
	r.change(t, "Asia/Kathmandu")
	r.invalidateAll()
	_, err = r.get(t.Context(), "new")
	require.NoError(t, err)
	require.Equal(t, "Asia/Kathmandu", r.zone(t))
}

func TestTenantCache_NoTenant_FreshForASecond(t *testing.T) {
	t.Parallel()
	r := newCacheRig(t, 10)
	_, err := r.get(t.Context(), "new")
	require.Equal(t, errcode.TenantNotFound, errcode.Of(err))
	put(t, r.store.PutTenant, Tenant{ID: "new", Plan: "starter"})
	_, err = r.get(t.Context(), "new")
	require.Equal(t, errcode.TenantNotFound, errcode.Of(err))
	r.pass(unheardAge)
	_, err = r.get(t.Context(), "new")
	require.NoError(t, err)

	_, err = r.get(t.Context(), "new2")
	require.Equal(t, errcode.TenantNotFound, errcode.Of(err))
	put(t, r.store.PutTenant, Tenant{ID: "new2", Plan: "starter"})
	r.drop("new2")
	_, err = r.get(t.Context(), "new2")
	require.NoError(t, err, "unless its creation is heard")
	for _, bad := range []string{"", "a b", "a\x00"} {
		_, err = r.get(t.Context(), bad)
		require.Equal(t, errcode.TenantNotFound, errcode.Of(err))
	}
}

func TestTenantCache_Bounded(t *testing.T) {
	t.Parallel()
	r := newCacheRig(t, 3)
	for i := range 10 {
		put(t, r.store.PutTenant, Tenant{ID: fmt.Sprint("t", i), Plan: "starter"})
		_, err := r.get(t.Context(), fmt.Sprint("t", i))
		require.NoError(t, err)
	}
	require.Equal(t, 3, r.entries.Len())
}

func TestTenantCache_ReadBeforeNotification_NotCached(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	r := newCacheRig(t, 10)
	blocker, err := r.store.db.Pool().Begin(ctx)
	require.NoError(t, err)
	testenv.Exec(t, blocker, "LOCK TABLE tenants IN ACCESS EXCLUSIVE MODE")
	got := make(chan error, 1)
	go func() {
		_, err := r.get(ctx, "acme")
		got <- err
	}()
	testenv.Eventually(t, func() bool { return count(t, r.store, testenv.Waiting()) == 1 }, "the read waits")
	r.drop("acme")
	require.NoError(t, blocker.Rollback(ctx))
	require.NoError(t, <-got)
	require.False(t, r.has("acme"))
	_, err = r.get(ctx, "acme")
	require.NoError(t, err)
	require.True(t, r.has("acme"))
}

func TestTenantCache_KnownAway_AnsweredAtOnceAsLastRead(t *testing.T) {
	t.Parallel()
	r := newCacheRig(t, 10)
	require.Equal(t, "UTC", r.zone(t))
	r.change(t, "Asia/Kathmandu")
	gone := errors.New("connection refused")
	r.cause.Store(&gone)
	r.pass(2 * heardAge)
	require.Equal(t, "UTC", r.zone(t))
	_, err := r.get(t.Context(), "beta")
	require.Equal(t, errcode.Unavailable, errcode.Of(err), "nothing is known of it")
	_, err = r.store.PatchTenant(t.Context(), "acme", TenantPatch{})
	require.Equal(t, errcode.Unavailable, errcode.Of(err))
	require.ErrorIs(t, err, gone)
	r.cause.Store(nil)
	r.pass(awayPause) // after the read of beta that failed
	require.Equal(t, "Asia/Kathmandu", r.zone(t))
}

// Requests for tenants that do not exist must not evict tenants that exist.
func TestTenantCache_UnknownTenants_DriveNobodyOut(t *testing.T) {
	t.Parallel()
	r := newCacheRig(t, 2)
	r.zone(t)
	for i := range 50 {
		_, err := r.get(t.Context(), fmt.Sprint("nobody", i))
		require.Equal(t, errcode.TenantNotFound, errcode.Of(err))
	}
	require.True(t, r.has("acme"))
}

// The tenants that a batch names are read together. Otherwise each tenant would take a query.
func TestTenantCache_ReadAhead_FewQueries(t *testing.T) {
	t.Parallel()
	r := newCacheRig(t, 1000)
	reg := prometheus.NewRegistry()
	require.NoError(t, r.stop(t.Context()))
	r.config.Metrics = lane.NewMetrics(reg)
	r.start()
	ids := []string{"acme", "nobody"}
	for i := range 300 {
		ids = append(ids, fmt.Sprint("many", i))
		put(t, r.store.PutTenant, Tenant{ID: ids[len(ids)-1], Plan: "starter"})
	}
	r.readAhead(t.Context(), ids)
	queries, read := batchesOf(t, reg)
	require.Equal(t, float64(len(ids)), read)
	require.LessOrEqual(t, queries, uint64(100), "of 302 tenants")
	for _, id := range ids {
		_, err := r.get(t.Context(), id)
		require.Equal(t, id == "nobody", errcode.Of(err) == errcode.TenantNotFound, id)
	}
	r.readAhead(t.Context(), ids)
	again, _ := batchesOf(t, reg)
	require.LessOrEqual(t, again, queries+1, "what is known is not read again")
}

// batchesOf returns the number of batches and of items that the lane has processed, from the metrics in reg.
func batchesOf(t *testing.T, reg *prometheus.Registry) (batches uint64, items float64) {
	t.Helper()
	families, err := reg.Gather()
	require.NoError(t, err)
	for _, f := range families {
		if strings.Contains(f.GetName(), "batch") {
			for _, m := range f.GetMetric() {
				batches, items = batches+m.GetHistogram().GetSampleCount(), items+m.GetHistogram().GetSampleSum()
			}
		}
	}
	return batches, items
}

// A read of many tenants looks up each id in the index, with a custom plan and with a generic plan.
func TestNamedTenants_ManyIDs_UseTheIndex(t *testing.T) {
	t.Parallel()
	testenv.NotOnCitus(t, "each shard is planned by itself, and an empty one is read whole")
	s := newStore(t)
	conn, err := s.db.Pool().Acquire(t.Context())
	require.NoError(t, err)
	defer conn.Release()
	for _, mode := range []string{"force_custom_plan", "force_generic_plan"} {
		testenv.Exec(t, conn, "SET plan_cache_mode = "+mode)
		ids := make([]string, 500)
		for i := range ids {
			ids[i] = fmt.Sprint("t", i)
		}
		for name, args := range map[string][]any{"NamedTenants": {ids, ""}, "Standings": {ids, time.Now()}} {
			rows, err := conn.Query(t.Context(), "EXPLAIN "+s.queries[name], args...)
			require.NoError(t, err)
			lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
			require.NoError(t, err)
			plan := strings.Join(lines, "\n")
			require.Contains(t, plan, "Index Cond: (tenant_id = k.tenant_id)", mode, name)
			require.NotContains(t, plan, "Seq Scan", mode, name)
			require.NotContains(t, plan, "hashed SubPlan", mode, name)
		}
	}
	testenv.Exec(t, conn, "RESET plan_cache_mode")
}

// The cache keeps no metadata, because requests do not need it. Tenants share the texts of plans and zones. Without
// these measures a tenant takes 750 bytes. The test is not parallel, because it measures the heap.
func TestTenantCache_ATenant_TakesAtMost130Bytes(t *testing.T) {
	const n = 20_000
	r := newCacheRig(t, n)
	testenv.Exec(t, r.store.db.Pool(), `INSERT INTO tenants (tenant_id, plan, anchor, metadata)
		SELECT 'tenant-' || lpad(n::text, 8, '0'), 'starter', now(), jsonb_build_object('name', repeat('x', 300)) FROM generate_series(1, $1::int) n`, n)
	ids := make([]string, n)
	for i := range ids {
		ids[i] = fmt.Sprintf("tenant-%08d", i+1)
	}
	before := heap()
	r.readAhead(t.Context(), ids)
	for _, id := range ids { // get repeats a failed read, and returns its error
		_, err := r.get(t.Context(), id)
		require.NoError(t, err)
	}
	each := float64(heap()-before) / n
	t.Logf("%.0f bytes", each)
	require.Less(t, each, 130.0)
	runtime.KeepAlive(ids)
}

func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// hearing is a fake listener. Its value is true while the listener is connected.
type hearing atomic.Bool

func (h *hearing) Listening() bool { return (*atomic.Bool)(h).Load() }
