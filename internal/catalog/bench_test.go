package catalog

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
	"github.com/quotasvc/quotasvc/internal/store/pgstore"
)

// BenchmarkTenant measures the lookup of a tenant in memory, and the first read of tenants by many concurrent
// callers.
func BenchmarkTenant(b *testing.B) {
	const tenants = 100_000
	pool := testenv.Pool(b, testenv.Postgres(b))
	store := NewStore(pgstore.New(pool, pgstore.Config{}), StoreConfig{})
	testenv.Exec(b, pool, `INSERT INTO tenants (tenant_id, plan, anchor) SELECT 't' || n, 'p', now() FROM generate_series(1, $1) n`, tenants)
	ids := make([]string, tenants)
	for i := range ids {
		ids[i] = fmt.Sprint("t", i+1)
	}
	for name, size := range map[string]int{"memory": tenants, "first read": 1} {
		b.Run(name, func(b *testing.B) {
			c := New(store, Config{Tenants: size})
			require.NoError(b, c.Start(b.Context()))
			if size > 1 {
				for _, id := range ids[:1000] {
					_, err := c.Tenant(b.Context(), id)
					require.NoError(b, err)
				}
				b.ResetTimer()
			}
			b.ReportAllocs()
			b.SetParallelism(256)
			b.RunParallel(func(pb *testing.PB) {
				for i := 0; pb.Next(); i++ {
					if _, err := c.Tenant(context.Background(), ids[i%1000]); err != nil {
						b.Error(err)
						return
					}
				}
			})
			b.StopTimer()
			require.NoError(b, c.Stop(context.Background()))
		})
	}
}

// BenchmarkApply measures Apply for a file of many tenants, new and unchanged, to compare the time with applyTimeout.
func BenchmarkApply(b *testing.B) {
	pool := testenv.Pool(b, testenv.Postgres(b))
	store := NewStore(pgstore.New(pool, pgstore.Config{}), StoreConfig{})
	f := &File{Plans: []Plan{{ID: "p"}}, Tenants: make([]Tenant, maxFileObjects-1)}
	for i := range f.Tenants {
		f.Tenants[i] = Tenant{ID: fmt.Sprint("t", i), Plan: "p"}
	}
	for _, name := range []string{"new", "unchanged"} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				_, err := store.Apply(b.Context(), f, name == "new")
				require.NoError(b, err)
			}
		})
		_, err := store.Apply(b.Context(), f, false)
		require.NoError(b, err)
	}
}

// BenchmarkReload measures a reload of 20,000 limits after a change of no limit, of one limit or of all limits.
func BenchmarkReload(b *testing.B) {
	pool := testenv.Pool(b, testenv.Postgres(b))
	store := NewStore(pgstore.New(pool, pgstore.Config{}), StoreConfig{})
	testenv.Exec(b, pool, `INSERT INTO limits (rule, spec) SELECT 'r' || n, jsonb_build_object('rule', 'r' || n, 'per', jsonb_build_array('tenant'),
		'kind', 'token_bucket', 'rate', '5/s', 'match', jsonb_build_object('tenant', 't' || n)) FROM generate_series(1, 20000) n`)
	known, err := store.readSnapshot(b.Context(), &Snapshot{}, time.Now())
	require.NoError(b, err)
	for name, change := range map[string]string{"none": "", "one": "UPDATE limits SET updated_at = clock_timestamp() WHERE rule = 'r7'"} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if change != "" {
					testenv.Exec(b, pool, change)
				}
				after, err := store.readSnapshot(b.Context(), known, time.Now())
				require.NoError(b, err)
				require.Equal(b, name == "none", after == known)
				known = after
			}
		})
	}
	b.Run("all", func(b *testing.B) {
		for b.Loop() {
			_, err := store.readSnapshot(b.Context(), &Snapshot{}, time.Now())
			require.NoError(b, err)
		}
	})
}
