package history

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/kit/errcode"
)

// A key was used again after the time in which keys are remembered. Both operations can be looked up, and each of
// them shows only its own entries.
func TestOperation_SharedID_IsOneOperation(t *testing.T) {
	t.Parallel()
	b := newBundle(t).hourly("acme", 10)
	must(b, debitOf("acme", "order", 4))
	b.exec(`UPDATE entries SET created_at = created_at - interval '31 days',
		month = date_trunc('month', (created_at - interval '31 days') AT TIME ZONE 'UTC')::date WHERE operation_id = 'order'`)
	old, err := b.Operation(t.Context(), "acme", "order", time.Time{})
	require.NoError(t, err)
	b.exec(`INSERT INTO entries SELECT (jsonb_populate_record(e, jsonb_build_object('seq', 99, 'amount', 3, 'month', date_trunc('month', now() AT TIME ZONE 'UTC')::date))).* FROM entries e WHERE operation_id = 'order'`)
	b.exec(`UPDATE entries SET created_at = now() WHERE operation_id = 'order' AND seq = 99`)
	amount := func(at time.Time) int64 {
		t.Helper()
		op, err := b.Operation(t.Context(), "acme", "order", at)
		require.True(t, err == nil && len(op.Entries) == 1, "operation at %s: %+v, %v", at, op, err)
		return op.Entries[0].Amount
	}
	newest, older, same := amount(time.Time{}), amount(time.Now().Add(-time.Hour)), amount(old.CreatedAt)
	assert.True(t, newest == 3 && older == 4 && same == 4, "amounts %d, %d, %d; want 3, 4, 4", newest, older, same)
	_, err = b.Operation(t.Context(), "acme", "order", old.CreatedAt.Add(-time.Microsecond))
	assert.True(t, errcode.Of(err) == errcode.OperationNotFound, "before there was one: %v", err)
}
