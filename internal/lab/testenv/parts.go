package testenv

import (
	"context"
	"io"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/store/namedsql"
	"github.com/quotasvc/quotasvc/internal/store/pgstore"
)

// Pool returns connections to a database. They are closed when the test ends.
func Pool(t testing.TB, databaseURL string) *pgxpool.Pool {
	t.Helper()
	pool := Must(t).Get(pgxpool.New(t.Context(), databaseURL))
	t.Cleanup(pool.Close)
	return pool
}

// Connect returns a connection to a database. It is closed when the test ends.
func Connect(t testing.TB, databaseURL string) *pgx.Conn {
	t.Helper()
	conn := Must(t).Get(pgx.Connect(t.Context(), databaseURL))
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

// CloseAtEnd closes c when the test ends, and returns c. It ignores an error of Close, because the test may have ended
// the connection.
func CloseAtEnd[C io.Closer](t testing.TB, c C) C {
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// Store returns a store that uses the connections of pool. No test reaches its time limit.
func Store(pool *pgxpool.Pool) *pgstore.Store {
	return pgstore.New(pool, pgstore.Config{Target: namedsql.Target(OnCitus()), Timeout: Patience})
}

// Exec runs a statement on a connection, in a transaction or on a pool. It fails the test if the statement fails.
func Exec(t testing.TB, on execer, sql string, args ...any) {
	t.Helper()
	_, err := on.Exec(t.Context(), sql, args...)
	require.NoError(t, err, "%s", sql)
}

type execer interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
}

// Put stores an object of the catalogue and returns it as it is stored. put is a method such as PutPlan of its store.
func Put[T any](t testing.TB, put func(context.Context, T) (T, bool, error), object T) T {
	t.Helper()
	stored, _, err := put(t.Context(), object)
	require.NoError(t, err)
	return stored
}

// StopAtEnd stops a part of the service, or a server, when the test ends. It fails the test if stop returns an error.
func StopAtEnd(t testing.TB, stop func(context.Context) error) {
	t.Helper()
	t.Cleanup(func() { within(t, "stop at the end of the test", stop) })
}
