package catalog

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/catalog/diff"
	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/lab/testenv"
	"github.com/quotasvc/quotasvc/internal/store/namedsql"
	"github.com/quotasvc/quotasvc/internal/store/pgstore"
)

func TestMain(m *testing.M) { testenv.Main(m) }

func openStore(t *testing.T, url string, cfg StoreConfig) *Store {
	t.Helper()
	return openStoreWith(t, url, cfg, pgstore.Config{})
}

func openStoreWith(t *testing.T, url string, cfg StoreConfig, dbCfg pgstore.Config) *Store {
	t.Helper()
	dbCfg.Target = namedsql.Target(testenv.OnCitus())
	return NewStore(pgstore.New(testenv.Pool(t, testenv.AsService(url)), dbCfg), cfg)
}

// byHand runs a statement as superuser, because the role of the service may not run it.
func byHand(t *testing.T, s *Store, sql string, args ...any) {
	t.Helper()
	url := testenv.AsSuperuser(t, s.db.Pool().Config().ConnString())
	testenv.Exec(t, testenv.Pool(t, url), sql, args...)
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
	testenv.StopAtEnd(t, c.Stop)
	return c
}

func put[T any](t *testing.T, put func(context.Context, T) (T, bool, error), object T) T {
	t.Helper()
	return testenv.Put(t, put, object)
}

// get returns an object that a store or a catalogue has.
func get[T any](t *testing.T, read func(context.Context, string) (T, error), id string) T {
	t.Helper()
	found, err := read(t.Context(), id)
	require.NoError(t, err)
	return found
}

// planOf returns a version of a plan. The version 0 is the newest one.
func planOf(t *testing.T, s *Store, id string, version int32) Plan {
	t.Helper()
	found, err := s.Plan(t.Context(), id, version)
	require.NoError(t, err)
	return found
}

// apply applies the text of a file and returns the differences.
func apply(t *testing.T, s *Store, text string, dryRun bool) *diff.Report {
	t.Helper()
	report, err := s.Apply(t.Context(), parsed(t, text), dryRun)
	require.NoError(t, err)
	return report
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
