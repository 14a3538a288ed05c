package access

import (
	"log/slog"
	"net/netip"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/catalog"
	"github.com/quotasvc/quotasvc/internal/lab/testenv"
	"github.com/quotasvc/quotasvc/internal/outbox/auditlog"
)

func TestMain(m *testing.M) { testenv.Main(m) }

const bootstrap = "bootstrap-key-of-a-test-0123456789"

var home = netip.MustParseAddr("192.0.2.1")

// instance is a directory with its store and a pool of its database.
type instance struct {
	*Directory

	t     testing.TB
	store *Store
	pool  *pgxpool.Pool
}

// newInstance starts a directory that follows the announcements in a database.
func newInstance(t testing.TB, url string) *instance {
	t.Helper()
	pool := testenv.Pool(t, url) // the pool of the test, whose role has all rights
	db := testenv.Store(testenv.Pool(t, testenv.AsService(url)))
	cs := catalog.NewStore(db, catalog.StoreConfig{})
	store := NewStore(db)
	d, err := NewDirectory(store, bootstrap, Config{Log: slog.New(slog.DiscardHandler), RereadEvery: time.Hour})
	require.NoError(t, err)
	c := catalog.New(cs, catalog.Config{OnKeys: d.Changed, ReloadEvery: time.Hour})
	require.NoError(t, c.Start(t.Context()))
	testenv.StopAtEnd(t, c.Stop)
	require.NoError(t, d.Start(t.Context()))
	testenv.StopAtEnd(t, d.Stop)
	return &instance{Directory: d, t: t, store: store, pool: pool}
}

// ask authenticates a caller that sends this secret.
func (i *instance) ask(secret string) (*Key, error) {
	return i.Authenticate(i.t.Context(), "Bearer "+secret, at(home), time.Now())
}

func (i *instance) create(n New) (Key, string) {
	i.t.Helper()
	ctx := auditlog.With(i.t.Context(), &auditlog.Actor{KeyID: auditlog.Bootstrap, Name: "bootstrap", RequestID: "r", IP: "192.0.2.1"})
	k, secret, err := i.store.Create(ctx, n)
	require.NoError(i.t, err)
	return k, secret
}

// at returns a function that returns the address, for Authenticate.
func at(address netip.Addr) func() netip.Addr { return func() netip.Addr { return address } }

func anybody(*Key) error { return nil }
