package catalog

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/lab/testenv"
	"github.com/quotasvc/quotasvc/internal/store/namedsql"
	"github.com/quotasvc/quotasvc/internal/store/pgstore"
)

func TestMain(m *testing.M) { testenv.Main(m) }

func openPool(t *testing.T, url string) *pgxpool.Pool {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), url)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	return pool
}

func openStore(t *testing.T, url string, cfg StoreConfig) *Store {
	t.Helper()
	return openStoreWith(t, url, cfg, pgstore.Config{})
}

func openStoreWith(t *testing.T, url string, cfg StoreConfig, dbCfg pgstore.Config) *Store {
	t.Helper()
	dbCfg.Target = namedsql.Target(testenv.OnCitus())
	db := pgstore.New(openPool(t, testenv.AsService(url)), dbCfg)
	store := NewStore(db, cfg)
	return store
}

// byHand runs a statement as superuser, because the role of the service may not run it.
func byHand(t *testing.T, s *Store, sql string, args ...any) {
	t.Helper()
	url := testenv.AsSuperuser(t, s.db.Pool().Config().ConnString())
	_, err := openPool(t, url).Exec(t.Context(), sql, args...)
	require.NoError(t, err)
}

// newStore returns a store with a separate database.
func newStore(t *testing.T) *Store {
	t.Helper()
	return openStore(t, testenv.Postgres(t), StoreConfig{})
}

// startCatalog runs a catalogue on a database until the test ends.
func startCatalog(t *testing.T, url string, cfg Config) *Catalog {
	t.Helper()
	c := New(openStore(t, url, StoreConfig{}), cfg)
	require.NoError(t, c.Start(t.Context()))
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), testenv.Patience)
		defer cancel()
		require.NoError(t, c.Stop(ctx))
	})
	return c
}

func put[T any](t *testing.T, put func(context.Context, T) (T, bool, error), object T) T {
	t.Helper()
	stored, _, err := put(t.Context(), object)
	require.NoError(t, err)
	return stored
}

// patch changes a tenant and returns it as it is stored.
func patch(t *testing.T, s *Store, id string, p TenantPatch) Tenant {
	t.Helper()
	change, err := s.PatchTenant(t.Context(), id, p)
	require.NoError(t, err)
	return change.After
}

// fieldsIn returns the names of the fields with faults in an *errcode.Error.
func fieldsIn(t *testing.T, err error) []string {
	t.Helper()
	var e *errcode.Error
	require.ErrorAs(t, err, &e)
	fields := make([]string, len(e.Fields))
	for i, f := range e.Fields {
		fields[i] = f.Field
	}
	return fields
}
