package session

import (
	"bytes"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/access"
	"github.com/quotasvc/quotasvc/internal/lab/testenv"
)

var home = netip.MustParseAddr("192.0.2.1") // the address of visitors

func TestMain(m *testing.M) { testenv.Main(m) }

// open returns a store that uses the service's role, and a pool whose role has all rights.
func open(t *testing.T) (*Store, *pgxpool.Pool) {
	t.Helper()
	url := testenv.Postgres(t)
	return NewStore(testenv.Store(testenv.Pool(t, testenv.AsService(url))), access.NewStrangers([]byte("key of tests"))), testenv.Pool(t, url)
}

func TestSession_OpensOnEveryInstanceUntilItEnds(t *testing.T) {
	t.Parallel()
	s, pool := open(t)
	made := testenv.Must(t).Get(s.Create(t.Context(), "key-1", "", "qk_the secret"))
	left := time.Until(made.ExpiresAt)
	assert.True(t, left >= Lifetime-time.Hour && left <= Lifetime+time.Hour, "it lasts %s", left)
	found, err := s.Open(t.Context(), home, made.ID)
	require.NoError(t, err)
	assert.True(t, *found == *made, "%+v, want %+v", found, made)
	require.NoError(t, s.End(t.Context(), made.ID))
	require.NoError(t, s.End(t.Context(), made.ID))
	_, err = s.Open(t.Context(), home, made.ID)
	assert.ErrorIs(t, err, ErrNone, "after its end")
	made, err = s.Create(t.Context(), "key-1", "", "qk_the secret")
	require.NoError(t, err)
	testenv.Exec(t, pool, "UPDATE console_sessions SET expires_at = clock_timestamp()")
	_, err = s.Open(t.Context(), home, made.ID)
	assert.ErrorIs(t, err, ErrNone, "after its time")
	testenv.Must(t).Get(s.Create(t.Context(), "key-2", "", "qk_another"))
	var rows int
	require.NoError(t, pool.QueryRow(t.Context(), "SELECT count(*) FROM console_sessions").Scan(&rows))
	assert.Equal(t, 1, rows, "rows are left, want the new one")
}

func TestSession_StrangeIDs_OpenNothing(t *testing.T) {
	t.Parallel()
	s, _ := open(t)
	made, err := s.Create(t.Context(), "key-1", "", "secret")
	require.NoError(t, err)
	for _, id := range []string{"", "x", made.ID + "A", made.ID[1:], strings.Repeat("A", len(made.ID)), made.ID[:len(made.ID)-1] + "!", "\x00"} {
		_, err = s.Open(t.Context(), home, id)
		assert.ErrorIs(t, err, ErrNone, "%q", id)
		require.NoError(t, s.End(t.Context(), id))
	}
	_, err = s.Open(t.Context(), home, made.ID)
	assert.NoError(t, err)
}

// TestSession_RowsOpenNothing: a person who can read the table learns neither the cookie nor the secret. A person who
// can write to the table cannot give a session another key.
func TestSession_RowsOpenNothing(t *testing.T) {
	t.Parallel()
	s, pool := open(t)
	made, err := s.Create(t.Context(), "key-1", "", "qk_the_secret")
	require.NoError(t, err)
	var name, sealed []byte
	require.NoError(t, pool.QueryRow(t.Context(), "SELECT name, sealed FROM console_sessions").Scan(&name, &sealed))
	for _, hidden := range [][]byte{[]byte("the_secret"), []byte(made.ID), name} {
		assert.False(t, bytes.Contains(sealed, hidden), "the sealed secret contains %q", hidden)
	}
	testenv.Exec(t, pool, "UPDATE console_sessions SET key_id = 'key-2'")
	_, err = s.Open(t.Context(), home, made.ID)
	assert.ErrorIs(t, err, ErrNone, "with another key")
}

func TestSession_OneMoreThanPerKey_EndsTheOldest(t *testing.T) {
	t.Parallel()
	s, _ := open(t)
	var ids []string
	for range PerKey + 1 {
		ids = append(ids, testenv.Must(t).Get(s.Create(t.Context(), "key-1", "", "secret")).ID)
	}
	other, err := s.Create(t.Context(), "key-2", "", "secret")
	require.NoError(t, err)
	_, err = s.Open(t.Context(), home, ids[0])
	assert.ErrorIs(t, err, ErrNone, "the oldest")
	for _, id := range append(ids[1:], other.ID) {
		testenv.Must(t).Get(s.Open(t.Context(), home, id))
	}
}

func TestSession_TokenIsItsOwn(t *testing.T) {
	t.Parallel()
	s, _ := open(t)
	a := testenv.Must(t).Get(s.Create(t.Context(), "key-1", "", "secret"))
	b := testenv.Must(t).Get(s.Create(t.Context(), "key-1", "", "secret"))
	assert.True(t, a.IsToken(a.Token()) && !a.IsToken(b.Token()) && !a.IsToken("") && !a.IsToken(a.ID) &&
		!new(Session).IsToken(""), "a session takes another token than its own")
}
