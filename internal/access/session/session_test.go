package session

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
	"github.com/quotasvc/quotasvc/internal/store/namedsql"
	"github.com/quotasvc/quotasvc/internal/store/pgstore"
)

func TestMain(m *testing.M) { testenv.Main(m) }

func check(t testing.TB, err error) {
	t.Helper()
	require.NoError(t, err)
}

// open returns a store that uses the service's role, and a pool whose role has all rights.
func open(t *testing.T) (*Store, *pgxpool.Pool) {
	t.Helper()
	url := testenv.Postgres(t)
	var pools [2]*pgxpool.Pool
	for i, at := range []string{testenv.AsService(url), url} {
		pool, err := pgxpool.New(t.Context(), at)
		check(t, err)
		t.Cleanup(pool.Close)
		pools[i] = pool
	}
	db, err := pgstore.New(pools[0], pgstore.Config{Target: namedsql.Target(testenv.OnCitus()), Timeout: testenv.Patience})
	check(t, err)
	s, err := NewStore(db)
	check(t, err)
	return s, pools[1]
}

func TestSession_OpensOnEveryInstanceUntilItEnds(t *testing.T) {
	t.Parallel()
	s, pool := open(t)
	made, err := s.Create(t.Context(), "key-1", "qk_the secret")
	check(t, err)
	if left := time.Until(made.ExpiresAt); left < Lifetime-time.Hour || left > Lifetime+time.Hour {
		t.Errorf("it lasts %s", left)
	}
	found, err := s.Open(t.Context(), made.ID)
	check(t, err)
	if *found != *made {
		t.Errorf("%+v, want %+v", found, made)
	}
	check(t, s.End(t.Context(), made.ID))
	check(t, s.End(t.Context(), made.ID))
	if _, err := s.Open(t.Context(), made.ID); !errors.Is(err, ErrNone) {
		t.Errorf("after its end: %v", err)
	}
	made, err = s.Create(t.Context(), "key-1", "qk_the secret")
	check(t, err)
	_, err = pool.Exec(t.Context(), "UPDATE console_sessions SET expires_at = clock_timestamp()")
	check(t, err)
	if _, err := s.Open(t.Context(), made.ID); !errors.Is(err, ErrNone) {
		t.Errorf("after its time: %v", err)
	}
	_, err = s.Create(t.Context(), "key-2", "qk_another")
	check(t, err)
	var rows int
	check(t, pool.QueryRow(t.Context(), "SELECT count(*) FROM console_sessions").Scan(&rows))
	if rows != 1 {
		t.Errorf("%d rows are left, want the new one", rows)
	}
}

func TestSession_StrangeIDs_OpenNothing(t *testing.T) {
	t.Parallel()
	s, _ := open(t)
	made, err := s.Create(t.Context(), "key-1", "secret")
	check(t, err)
	for _, id := range []string{"", "x", made.ID + "A", made.ID[1:], strings.Repeat("A", len(made.ID)), made.ID[:len(made.ID)-1] + "!", "\x00"} {
		if _, err := s.Open(t.Context(), id); !errors.Is(err, ErrNone) {
			t.Errorf("%q: %v", id, err)
		}
		check(t, s.End(t.Context(), id))
	}
	if _, err := s.Open(t.Context(), made.ID); err != nil {
		t.Error(err)
	}
}

// TestSession_RowsOpenNothing: a person who can read the table learns neither the cookie nor the secret. A person who
// can write to the table cannot give a session another key.
func TestSession_RowsOpenNothing(t *testing.T) {
	t.Parallel()
	s, pool := open(t)
	made, err := s.Create(t.Context(), "key-1", "qk_the_secret")
	check(t, err)
	var name, sealed []byte
	check(t, pool.QueryRow(t.Context(), "SELECT name, sealed FROM console_sessions").Scan(&name, &sealed))
	for _, hidden := range [][]byte{[]byte("the_secret"), []byte(made.ID), name} {
		if bytes.Contains(sealed, hidden) {
			t.Errorf("the sealed secret contains %q", hidden)
		}
	}
	_, err = pool.Exec(t.Context(), "UPDATE console_sessions SET key_id = 'key-2'")
	check(t, err)
	if _, err := s.Open(t.Context(), made.ID); !errors.Is(err, ErrNone) {
		t.Errorf("with another key: %v", err)
	}
}

func TestSession_OneMoreThanPerKey_EndsTheOldest(t *testing.T) {
	t.Parallel()
	s, _ := open(t)
	var ids []string
	for range PerKey + 1 {
		made, err := s.Create(t.Context(), "key-1", "secret")
		check(t, err)
		ids = append(ids, made.ID)
	}
	other, err := s.Create(t.Context(), "key-2", "secret")
	check(t, err)
	if _, err := s.Open(t.Context(), ids[0]); !errors.Is(err, ErrNone) {
		t.Errorf("the oldest: %v", err)
	}
	for _, id := range append(ids[1:], other.ID) {
		if _, err := s.Open(t.Context(), id); err != nil {
			t.Fatal(err)
		}
	}
}

func TestSession_TokenIsItsOwn(t *testing.T) {
	t.Parallel()
	s, _ := open(t)
	a, err := s.Create(t.Context(), "key-1", "secret")
	check(t, err)
	b, err := s.Create(t.Context(), "key-1", "secret")
	check(t, err)
	if !a.IsToken(a.Token()) || a.IsToken(b.Token()) || a.IsToken("") || a.IsToken(a.ID) || new(Session).IsToken("") {
		t.Error("a session takes another token than its own")
	}
}
