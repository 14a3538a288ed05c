package testenv

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
)

// Pool returns connections to a database. They are closed when the test ends.
func Pool(t testing.TB, databaseURL string) *pgxpool.Pool {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), databaseURL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

// StopAtEnd stops a part of the service when the test ends. It fails the test if stop returns an error.
func StopAtEnd(t testing.TB, stop func(context.Context) error) {
	t.Helper()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), Patience)
		defer cancel()
		if err := stop(ctx); err != nil {
			t.Error(err)
		}
	})
}
