package link

import (
	"context"
	"encoding/base64"
	"errors"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/access"
	"github.com/quotasvc/quotasvc/internal/catalog"
	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/lab/testenv"
	"github.com/quotasvc/quotasvc/internal/outbox/auditlog"
)

// home is the address of visitors with good links; others show bad ones.
var home = netip.MustParseAddr("192.0.2.1")

func TestMain(m *testing.M) { testenv.Main(m) }

// open returns a store that uses the service's role, and a pool whose role has all rights. The tenant acme exists.
func open(t *testing.T) (*Store, *pgxpool.Pool) {
	t.Helper()
	url := testenv.Postgres(t)
	db := testenv.Store(testenv.Pool(t, testenv.AsService(url)))
	c := catalog.NewStore(db, catalog.StoreConfig{})
	testenv.Put(t, c.PutPlan, catalog.Plan{ID: "basic"})
	for _, tenant := range []string{"acme", "globex"} {
		testenv.Put(t, c.PutTenant, catalog.Tenant{ID: tenant, Plan: "basic"})
	}
	s := NewStore(db, access.NewStrangers([]byte("key of tests")), func(ctx context.Context, tenant string) error {
		_, err := c.Tenant(ctx, tenant)
		return err
	})
	return s, testenv.Pool(t, url)
}

// parts returns the id and the secret in the URL of a link.
func parts(t testing.TB, url string) (id, secret string) {
	t.Helper()
	rest, ok := strings.CutPrefix(url, "https://q.example"+Prefix)
	id, secret, found := strings.Cut(rest, "/open/")
	require.True(t, ok && found, "the link is %s", url)
	return id, secret
}

func (s *Store) make(t testing.TB, tenant string) (id, secret string) {
	t.Helper()
	made, err := s.Create(t.Context(), New{Tenant: tenant, Base: "https://q.example", ReturnURL: "https://app.example/billing?x=1#top"})
	require.NoError(t, err)
	return parts(t, made.URL)
}

func TestLink_OpensItsTenantUntilItEnds(t *testing.T) {
	t.Parallel()
	s, pool := open(t)
	made := testenv.Must(t).Get(s.Create(t.Context(), New{Tenant: "acme", Base: "https://q.example"}))
	left := time.Until(made.ExpiresAt)
	assert.True(t, left >= ExpiresDefault-10*time.Minute && left <= ExpiresDefault+10*time.Minute, "it lasts %s", left)
	id, secret := s.make(t, "acme")
	found, err := s.Open(t.Context(), home, id, secret)
	require.NoError(t, err)
	assert.True(t, found.ID == id && found.Tenant == "acme" && found.ReturnURL == "https://app.example/billing?x=1#top",
		found)
	other, _ := s.make(t, "globex")
	for _, wrong := range [][2]string{{other, secret}, {id, secret[1:]}, {id, secret + "A"}, {id, strings.Repeat("A", len(secret))}, {id, ""}, {"", secret}, {"\x00", secret}, {strings.ToUpper(id), secret}} {
		_, err = s.Open(t.Context(), home, wrong[0], wrong[1])
		assert.ErrorIs(t, err, ErrNone, "%q", wrong)
	}
	testenv.Exec(t, pool, "UPDATE portal_sessions SET expires_at = clock_timestamp() WHERE session_id = $1", id)
	_, err = s.Open(t.Context(), home, id, secret)
	assert.ErrorIs(t, err, ErrNone, "after its time")
	s.make(t, "acme")
	var rows int
	require.NoError(t, pool.QueryRow(t.Context(), "SELECT count(*) FROM portal_sessions WHERE session_id = $1", id).Scan(&rows))
	assert.Zero(t, rows, "an ended link stays")
}

func TestLink_EndsWithItsKeyAndWithAllOfItsTenant(t *testing.T) {
	t.Parallel()
	s, pool := open(t)
	testenv.Exec(t, pool, "INSERT INTO keys (key_id, name, scopes) VALUES ('k1', 'n', '{admin}'), ('k2', 'n', '{admin}')")
	create := func(key string) (id, secret string) {
		made, err := s.Create(auditlog.With(t.Context(), &auditlog.Actor{KeyID: key, Name: "n"}), New{Tenant: "acme", Base: "https://q.example"})
		require.NoError(t, err)
		return parts(t, made.URL)
	}
	ended := func(what, id, secret string) {
		t.Helper()
		_, err := s.Open(t.Context(), home, id, secret)
		assert.ErrorIs(t, err, ErrNone, "%s", what)
	}
	works := func(id, secret string) {
		t.Helper()
		testenv.Must(t).Get(s.Open(t.Context(), home, id, secret))
	}
	revokedID, revoked := create("k1")
	expiredID, expired := create("k2")
	bootstrapID, bootstrap := create(auditlog.Bootstrap) // the bootstrap key is not stored
	othersID, others := s.make(t, "globex")
	works(revokedID, revoked)
	works(expiredID, expired)
	testenv.Exec(t, pool, "UPDATE keys SET revoked_at = clock_timestamp() WHERE key_id = 'k1'")
	testenv.Exec(t, pool, "UPDATE keys SET expires_at = clock_timestamp() WHERE key_id = 'k2'")
	ended("its key is revoked", revokedID, revoked)
	ended("its key has expired", expiredID, expired)
	works(bootstrapID, bootstrap)
	require.NoError(t, s.EndAll(t.Context(), "acme"))
	require.NoError(t, s.EndAll(t.Context(), "acme"))
	ended("all are ended", bootstrapID, bootstrap)
	works(othersID, others)
	err := s.EndAll(t.Context(), "nobody")
	assert.True(t, errcode.Of(err) == errcode.TenantNotFound, "an unknown tenant: %v", err)
	var lines string
	require.NoError(t, pool.QueryRow(t.Context(), "SELECT string_agg(action, ' ' ORDER BY audit_id) FROM audit WHERE object_kind = 'portal_session' AND tenant_id = 'acme'").Scan(&lines))
	assert.Equal(t, "portal_session.create portal_session.create portal_session.create portal_session.delete", lines,
		"audit log")
	var all string
	require.NoError(t, pool.QueryRow(t.Context(), "SELECT string_agg(a::text, ' ') FROM audit a").Scan(&all))
	for _, secret := range []string{revoked, expired, bootstrap, others} {
		assert.NotContains(t, all, secret, "the audit log has a secret")
	}
}

// TestLink_ManyLookUpsOfATenant_OthersDoNotWait: a holder of a tenant's key can make and end thousands of links, which
// look right until they are looked up.
func TestLink_ManyLookUpsOfATenant_OthersDoNotWait(t *testing.T) {
	t.Parallel()
	s, _ := open(t)
	id, secret := s.make(t, "acme")
	otherID, otherSecret := s.make(t, "globex")
	of := s.of(testenv.Must(t).Get(base64.RawURLEncoding.DecodeString(secret)))
	var lookUps sync.WaitGroup
	begun, release := make(chan struct{}), make(chan struct{})
	defer lookUps.Wait()
	defer close(release)
	all := int(s.db.Pool().Config().MaxConns)
	for range all {
		lookUps.Go(func() {
			_ = of.View(t.Context(), "look", func(context.Context, pgx.Tx) error {
				select {
				case begun <- struct{}{}:
					<-release
				case <-release:
				}
				return nil
			})
		})
	}
	for range ((all+1)/2 + 1) / 2 { // half of half of all
		<-begun
	}
	full, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err := s.Open(full, home, id, secret)
	require.Error(t, err, "a further look-up of the same tenant")
	found, err := s.Open(t.Context(), home, otherID, otherSecret)
	require.NoError(t, err)
	assert.Equal(t, "globex", found.Tenant)
}

// TestLink_Invented_ShareAllConnectionsForStrangers: look-ups of what nobody made have no caller, which would have only
// half of the connections.
func TestLink_Invented_ShareAllConnectionsForStrangers(t *testing.T) {
	t.Parallel()
	s, pool := open(t)
	id, secret := s.make(t, "acme")
	lock := testenv.Must(t).Get(pool.Begin(t.Context()))
	var lookUps sync.WaitGroup
	defer lookUps.Wait()
	defer func() { assert.NoError(t, lock.Rollback(t.Context())) }()
	testenv.Must(t).Get(lock.Exec(t.Context(), "LOCK portal_sessions"))
	all := int(s.db.Pool().Config().MaxConns)
	for n := range all {
		from := netip.AddrFrom4([4]byte{192, 0, 2, byte(n)})
		lookUps.Go(func() { _, _ = s.Open(t.Context(), from, id, "A"+secret[1:]) }) // its tag is wrong
	}
	testenv.Eventually(t, func() bool {
		var waiting int
		const held = "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'portal_sessions'::regclass"
		return lock.QueryRow(t.Context(), held).Scan(&waiting) == nil && waiting == all
	}, "all connections look up")
}

func TestLink_OneMoreThanPerTenant_EndsTheOldest(t *testing.T) {
	t.Parallel()
	s, pool := open(t)
	oldest, oldestSecret := s.make(t, "acme")
	second, secondSecret := s.make(t, "acme")
	testenv.Exec(t, pool, `INSERT INTO portal_sessions (session_id, secret_hash, tenant_id, expires_at)
		SELECT 'x' || n, sha256('x'), 'acme', clock_timestamp() + interval '1 hour' FROM generate_series(1, $1) n`, PerTenant-2)
	newest, newestSecret := s.make(t, "acme")
	_, err := s.Open(t.Context(), home, oldest, oldestSecret)
	assert.ErrorIs(t, err, ErrNone, "the oldest")
	for id, secret := range map[string]string{second: secondSecret, newest: newestSecret} {
		testenv.Must(t).Get(s.Open(t.Context(), home, id, secret))
	}
}

// fill adds n links to the pages of the tenant acme, as created by the key. Their ids begin with the prefix.
func fill(t *testing.T, pool *pgxpool.Pool, prefix, key string, n int) {
	t.Helper()
	testenv.Exec(t, pool, `INSERT INTO portal_sessions (session_id, secret_hash, tenant_id, key_id, expires_at)
		SELECT $1 || n, sha256('x'), 'acme', $2, clock_timestamp() + interval '1 hour'
		FROM generate_series(1, $3) n`, prefix, key, n)
	testenv.Exec(t, pool, `INSERT INTO audit (actor_key, actor_name, action, object_kind, object_id, tenant_id, after)
		SELECT $2, 'n', 'portal_session.create', 'portal_session', $1 || n, 'acme', '{}'
		FROM generate_series(1, $3) n`, prefix, key, n)
}

// as returns a context in which a key that is bound to the tenant acme acts.
func as(t *testing.T, key string) context.Context {
	t.Helper()
	return auditlog.With(t.Context(), &auditlog.Actor{KeyID: key, Name: "n", Tenant: "acme"})
}

func TestLink_OfTheTenantsOwnKeys_EndsNoOther(t *testing.T) {
	t.Parallel()
	s, pool := open(t)
	testenv.Exec(t, pool, "INSERT INTO keys (key_id, name, scopes, tenant_id) VALUES ('own', 'n', '{admin}', 'acme')")
	testenv.Exec(t, pool, "INSERT INTO keys (key_id, name, scopes) VALUES ('free', 'n', '{admin}')")
	id, secret := s.make(t, "acme")
	fill(t, pool, "others", "free", PerTenant-2)
	fill(t, pool, "own", "own", PerTenant-1)
	_, err := s.Create(as(t, "own"), New{Tenant: "acme", Base: "https://q.example"})
	require.NoError(t, err, "links of others do not count")
	_, err = s.Create(as(t, "own"), New{Tenant: "acme", Base: "https://q.example"})
	require.Equal(t, errcode.TooMany, errcode.Of(err), "%v", err)
	s.make(t, "acme")
	testenv.Must(t).Get(s.Open(t.Context(), home, id, secret))
	s.make(t, "acme")
	_, err = s.Open(t.Context(), home, id, secret)
	require.ErrorIs(t, err, ErrNone, "the oldest of the others")
	var own int
	row := pool.QueryRow(t.Context(), "SELECT count(*) FROM portal_sessions WHERE key_id = 'own'")
	require.NoError(t, row.Scan(&own))
	assert.Equal(t, PerTenant, own, "links of the tenant's key")
}

func TestLink_OfAnEndedKey_DoesNotCount(t *testing.T) {
	t.Parallel()
	s, pool := open(t)
	testenv.Exec(t, pool, `INSERT INTO keys (key_id, name, scopes, tenant_id, revoked_at, expires_at) VALUES
		('revoked', 'n', '{admin}', 'acme', clock_timestamp(), NULL),
		('expired', 'n', '{admin}', 'acme', NULL, clock_timestamp()),
		('other', 'n', '{admin}', '', clock_timestamp(), NULL),
		('own', 'n', '{admin}', 'acme', NULL, NULL)`)
	id, secret := s.make(t, "acme")
	fill(t, pool, "revoked", "revoked", PerTenant)
	fill(t, pool, "expired", "expired", PerTenant)
	testenv.Must(t).Get(s.Create(as(t, "own"), New{Tenant: "acme", Base: "https://q.example"}))
	fill(t, pool, "other", "other", PerTenant)
	s.make(t, "acme")
	testenv.Must(t).Get(s.Open(t.Context(), home, id, secret))
	var rows int
	require.NoError(t, pool.QueryRow(t.Context(), "SELECT count(*) FROM portal_sessions").Scan(&rows))
	assert.Equal(t, 3, rows, "links of ended keys stay")
}

func TestCreate_Faults(t *testing.T) {
	t.Parallel()
	s, _ := open(t)
	for _, url := range []string{"javascript:alert(1)", "/billing", "https://", "ftp://app.example", "https://me:secret@app.example", "https://app.example/a b", "https://app.example/" + strings.Repeat("é", ReturnURLMax/2)} {
		_, err := s.Create(t.Context(), New{Tenant: "acme", ReturnURL: url})
		e, ok := errors.AsType[*errcode.Error](err)
		assert.True(t, ok && e.Code == errcode.InvalidArgument && e.Fields[0].Field == "return_url",
			"%.40s: %v", url, err)
	}
	_, err := s.Create(t.Context(), New{Tenant: "nobody"})
	assert.True(t, errcode.Of(err) == errcode.TenantNotFound, "an unknown tenant: %v", err)
}

func TestCheckBase_SchemeAndHostOnly(t *testing.T) {
	t.Parallel()
	for _, good := range []string{"https://quota.example.com", "http://127.0.0.1:8080"} {
		assert.Empty(t, CheckBase(good), "%s", good)
	}
	for _, bad := range []string{"quota.example.com", "https://quota.example.com/", "https://quota.example.com/x", "https://a:b@quota.example.com", "ftp://quota.example.com", "https://", "https://quota.example.com?x"} {
		assert.NotEmpty(t, CheckBase(bad), "%s passes", bad)
	}
}
