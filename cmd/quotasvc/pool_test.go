package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
)

// PostgreSQL ends a transaction of an instance that hangs, so that its locks are released. The test covers the pools of
// the catalogue and of events.
func TestPool_IdleTransaction_IsEnded(t *testing.T) {
	t.Parallel()
	for _, name := range []string{catalogPool, eventPool} {
		pool, err := openPool(t.Context(), testenv.Postgres(t), name, 1, nil)
		require.NoError(t, err)
		defer pool.Close()
		var limit string
		err = pool.QueryRow(t.Context(), "SHOW idle_in_transaction_session_timeout").Scan(&limit)
		assert.True(t, err == nil && limit == idleTransaction,
			"%s: idle transactions are ended after %q, %v", name, limit, err)
	}
}
