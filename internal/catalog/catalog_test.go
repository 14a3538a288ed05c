package catalog

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/kit/lane"
	"github.com/quotasvc/quotasvc/internal/lab/testenv"
	"github.com/quotasvc/quotasvc/internal/store/pgstore"
)

func count(t *testing.T, s *Store, sql string, args ...any) (n int) {
	t.Helper()
	require.NoError(t, s.db.Pool().QueryRow(t.Context(), sql, args...).Scan(&n))
	return n
}

func TestCatalog_ChangeSeenByAllInstances(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	url := testenv.Postgres(t)
	began := time.Now()
	// Only announcements cause reloads, because the period of reloads is an hour.
	cfg := Config{ReloadEvery: time.Hour, Now: func() time.Time { return began }}
	here, there := startCatalog(t, url, cfg), startCatalog(t, url, cfg)
	within := func(what string, ok func() bool) { t.Helper(); testenv.Eventually(t, ok, what) }

	put(t, here.PutMeter, call)
	within("meter", func() bool { return there.Snapshot().Meters["api_calls"] != nil })
	put(t, here.PutPlan, starter(10))
	within("plan", func() bool { return there.Snapshot().Plans["starter"] != nil })
	put(t, there.PutPlan, starter(20))
	within("version", func() bool {
		p := here.Snapshot().Plans["starter"]
		return p != nil && p.Version == 2
	})
	require.EqualValues(t, 20, here.Snapshot().Plans["starter"].Allowances[0].Amount)
	put(t, here.PutLimit, Limit{Rule: "r", Per: []string{"tenant"}, Kind: "token_bucket", Rate: "5/s"})
	within("limit", func() bool { return len(there.Snapshot().Limits) == 1 })
	require.NoError(t, there.DeleteLimit(ctx, "r"))
	within("no limit", func() bool { return len(here.Snapshot().Limits) == 0 })

	_, err := there.Tenant(ctx, "acme")
	require.Equal(t, errcode.TenantNotFound, errcode.Of(err))
	put(t, here.PutTenant, Tenant{ID: "acme", Plan: "starter"})
	within("tenant", func() bool {
		acme, err := there.Tenant(ctx, "acme")
		return err == nil && acme.Plan == "starter"
	})
	patch(t, here.Store, "acme", TenantPatch{Status: new(StatusSuspended)})
	acme := get(t, here.Tenant, "acme")
	require.True(t, acme.Suspended, "the instance that made the change sees it at once")
	within("suspension", func() bool {
		acme, err := there.Tenant(ctx, "acme")
		return err == nil && acme.Suspended
	})

	apply(t, here.Store, fileAsMappings, false)
	within("file", func() bool {
		s := there.Snapshot()
		acme, err := there.Tenant(ctx, "acme")
		return s.Meters["007"] != nil && len(s.Limits) == 1 && err == nil && acme.next != nil && acme.next.timezone == "Europe/Berlin"
	})
}

func TestCatalog_ManyChanges_AnnouncedAsAll(t *testing.T) {
	t.Parallel()
	url := testenv.Postgres(t)
	here, there := startCatalog(t, url, Config{ReloadEvery: time.Hour}), startCatalog(t, url, Config{ReloadEvery: time.Hour})
	seed(t, here.Store)
	text := "tenants:\n  acme: {plan: starter, timezone: Asia/Kathmandu}\n"
	for i := range pgstore.MaxAnnouncements {
		text += fmt.Sprintf("  t%d: {plan: starter}\n", i)
	}
	get(t, there.Tenant, "acme")
	apply(t, here.Store, text, false)
	testenv.Eventually(t, func() bool {
		acme, err := there.Tenant(t.Context(), "acme")
		return err == nil && acme.next != nil && acme.next.timezone == "Asia/Kathmandu"
	}, "tenant")
}

func TestCatalog_PeriodicReload(t *testing.T) {
	t.Parallel()
	c := startCatalog(t, testenv.Postgres(t), Config{ReloadEvery: 10 * time.Millisecond})
	testenv.Exec(t, c.db.Pool(), "INSERT INTO meters (meter, unit) VALUES ('by_hand', 'u')")
	testenv.Eventually(t, func() bool { return c.Snapshot().Meters["by_hand"] != nil }, "meter")
}

func TestCatalog_ListenerLost_CatchesUp(t *testing.T) {
	t.Parallel()
	testenv.NotOnCitus(t, "its commit takes longer than the listener's return, and the change, made by hand, is not announced")
	ctx := t.Context()
	url := testenv.Postgres(t)
	reg := prometheus.NewRegistry()
	c := startCatalog(t, url, Config{ReloadEvery: time.Hour, Heartbeat: time.Hour, Metrics: reg}) // no heartbeats: the last query stays LISTEN
	other := openStore(t, url, StoreConfig{})
	seed(t, other)
	get(t, c.Tenant, "acme")
	for round := range 3 {
		// The change commits in the transaction that ends the listener's connection. So no instance receives the
		// announcement of the change.
		n := count(t, other, `WITH ended AS MATERIALIZED (
			SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'LISTEN%'
		), changed AS (UPDATE tenants SET timezone = 'Etc/GMT+' || $1::text RETURNING 1), made AS (
			INSERT INTO meters (meter, unit) VALUES ('m' || $1::text, 'u') RETURNING 1
		) SELECT count(*) FROM ended, changed, made`, fmt.Sprint(round+1))
		require.Equal(t, 1, n)
		testenv.Eventually(t, func() bool {
			acme, err := c.Tenant(ctx, "acme")
			return err == nil && acme.Timezone == fmt.Sprintf("Etc/GMT+%d", round+1) && c.Snapshot().Meters[fmt.Sprintf("m%d", round+1)] != nil &&
				c.isListening()
		}, "caught up")
	}
	require.GreaterOrEqual(t, gathered(t, reg, "quotasvc_catalog_listener_lost_total"), 3.0)
	require.Equal(t, 1.0, gathered(t, reg, "quotasvc_catalog_listening"))
}

func gathered(t *testing.T, reg *prometheus.Registry, name string) float64 {
	t.Helper()
	families, err := reg.Gather()
	require.NoError(t, err)
	for _, f := range families {
		if m := f.GetMetric()[0]; f.GetName() == name {
			return m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}
	t.Fatalf("no metric %s", name)
	return 0
}

func TestCatalog_PostgreSQLDown_CopiesStay(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	server := testenv.PostgresPrivate(t)
	var ahead atomic.Int64 // added to the time of the clock, which does not advance by itself
	began, lanes := time.Now(), prometheus.NewRegistry()
	c := startCatalog(t, server.URL, Config{
		ReloadEvery: 50 * time.Millisecond, Heartbeat: 200 * time.Millisecond, Lanes: lane.NewMetrics(lanes),
		Now: func() time.Time { return began.Add(time.Duration(ahead.Load())) },
	})
	reads := func() float64 { return gathered(t, lanes, "quotasvc_lane_batch_items") }
	other := openStore(t, server.URL, StoreConfig{})
	seed(t, other)
	put(t, other.PutMeter, Meter{ID: "last", Unit: "u"})
	testenv.Eventually(t, func() bool { return c.Snapshot().Meters["last"] != nil }, "all announcements")
	get(t, c.Tenant, "acme")

	for name, outage := range map[string]struct{ begin, end func() }{
		"stopped": {server.Stop, server.Start},
		"frozen":  {server.Pause, server.Resume},
	} {
		outage.begin()
		testenv.Eventually(t, func() bool { return !c.isListening() }, "loss noticed")
		ahead.Add(int64(time.Hour)) // nothing in memory is fresh
		start := time.Now()
		acme, err := c.Tenant(ctx, "acme")
		require.NoError(t, err, name)
		require.Equal(t, "starter", acme.Plan)
		require.Less(t, time.Since(start), 10*defaultLoadTimeout)
		before := reads()
		_, err = c.Tenant(ctx, "acme")
		require.NoError(t, err, name)
		require.Equal(t, before, reads(), "asked once, PostgreSQL is left in peace")
		_, err = c.Tenant(ctx, "unknown")
		require.Equal(t, errcode.Unavailable, errcode.Of(err), name)
		require.NotNil(t, c.Snapshot().Plans["starter"])
		_, _, err = c.PutMeter(ctx, Meter{ID: "m" + name, Unit: "u"})
		require.Equal(t, errcode.Unavailable, errcode.Of(err), name)

		outage.end()
		ahead.Add(int64(awayPause))
		testenv.Eventually(t, func() bool {
			_, _, err := c.PutMeter(ctx, Meter{ID: "m" + name, Unit: "u"})
			return err == nil && c.isListening()
		}, "back")
		testenv.Eventually(t, func() bool { return c.Snapshot().Meters["m"+name] != nil }, "reloaded")
		_, err = c.Tenant(ctx, "unknown")
		require.Equal(t, errcode.TenantNotFound, errcode.Of(err), name)
	}
}

func TestCatalog_Start_NeedsPostgreSQL(t *testing.T) {
	t.Parallel()
	c := New(openStore(t, "postgres://nobody:hunter2@127.0.0.1:1/none", StoreConfig{}), Config{})
	require.Empty(t, c.Snapshot().Meters)
	_, err := c.Tenant(t.Context(), "acme")
	require.Equal(t, errcode.Unavailable, errcode.Of(err), "not started")
	err = c.Start(t.Context())
	require.Equal(t, errcode.Unavailable, errcode.Of(err))
	require.ErrorContains(t, err, "127.0.0.1")
	require.NotContains(t, err.Error(), "hunter2")
	require.NoError(t, c.Stop(t.Context()))
}

func TestCatalog_StartsOnce_StopsRepeatedly(t *testing.T) {
	t.Parallel()
	c := New(newStore(t), Config{})
	starting, cancel := context.WithCancel(t.Context())
	require.NoError(t, c.Start(starting))
	cancel() // cancels only the context of Start
	require.Error(t, c.Start(t.Context()))
	seed(t, c.Store)
	get(t, c.Tenant, "acme")
	require.NoError(t, c.Stop(t.Context()))
	require.NoError(t, c.Stop(t.Context()))
	require.Error(t, c.Start(t.Context()))
	_, err := c.Tenant(t.Context(), "other")
	require.Equal(t, errcode.Unavailable, errcode.Of(err))
}

func TestCatalog_ConcurrentReadersAndWriters(t *testing.T) {
	t.Parallel()
	url := testenv.Postgres(t)
	here, there := startCatalog(t, url, Config{Tenants: 8}), startCatalog(t, url, Config{Tenants: 8})
	seed(t, here.Store)
	const tenants, changes = 16, 10
	for i := range tenants {
		put(t, here.PutTenant, Tenant{ID: fmt.Sprint("t", i), Plan: "starter"})
	}
	var (
		stop    atomic.Bool
		readers sync.WaitGroup
		writers sync.WaitGroup
	)
	for _, c := range []*Catalog{here, there} {
		testenv.Eventually(t, func() bool { return c.Snapshot().Plans["starter"] != nil }, "snapshot")
		for r := range 4 {
			readers.Go(func() {
				for i := r; !stop.Load(); i++ {
					tenant, err := c.Tenant(context.Background(), fmt.Sprint("t", i%tenants))
					if err != nil || tenant.Plan != "starter" || len(c.Snapshot().Plans["starter"].Allowances) != 1 {
						t.Errorf("%v %v", tenant, err)
						return
					}
				}
			})
		}
	}
	for w := range tenants {
		writers.Go(func() {
			for i := range changes {
				_, err := here.PatchTenant(context.Background(), fmt.Sprint("t", w), TenantPatch{Timezone: new(fmt.Sprintf("Etc/GMT+%d", i+1)), Apply: applyNow})
				assert.NoError(t, err)
			}
			_, _, err := there.PutPlan(context.Background(), starter(int64(w)+1))
			assert.NoError(t, err)
		})
	}
	writers.Wait()
	for i := range tenants {
		testenv.Eventually(t, func() bool {
			tenant, err := there.Tenant(t.Context(), fmt.Sprint("t", i))
			return err == nil && tenant.Timezone == fmt.Sprintf("Etc/GMT+%d", changes)
		}, "the last change")
	}
	stop.Store(true)
	readers.Wait()
}

func TestStore_DeadConnections_Retried(t *testing.T) {
	t.Parallel()
	url := testenv.Postgres(t)
	s, other := openStore(t, url, StoreConfig{}), openStore(t, url, StoreConfig{})
	for _, use := range []func() error{
		func() error { return s.DeleteMeter(t.Context(), "m") },
		func() error { _, _, err := s.PutMeter(t.Context(), Meter{ID: "m", Unit: "u"}); return err },
		func() error { _, err := s.Meter(t.Context(), "m"); return err },
	} {
		put(t, s.PutMeter, Meter{ID: "m", Unit: "u"})
		require.Equal(t, 1, count(t, other, `SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
			WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'`))
		require.NoError(t, use())
	}
}
