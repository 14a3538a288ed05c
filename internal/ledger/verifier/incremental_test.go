package verifier

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/ledger"
)

func TestVerify_Incremental_ReadsNewEntriesOnly(t *testing.T) {
	t.Parallel()
	b := newBundle(t).history()
	first := b.mustVerify() // the first pass reads the whole journal
	require.True(t, !first.Incremental && first.Entries >= 20, "the first pass: %+v", first)
	b.wholeUpTo = 0
	again := b.mustVerify()
	assert.True(t, again.Incremental && again.Entries == 0 && again.Unchanged == 2 && again.Totals["api_calls"] == first.Totals["api_calls"],
		"nothing was entered, and the pass read %d entries, with totals %+v", again.Entries, again.Totals)
	b.advance(2 * time.Hour)
	mustDo(b, debitOf("acme", "new", 5))
	mustDo(b, &ledger.Refund{Tenant: "acme", Key: "r2", OperationID: "d2", Amount: 5})
	next := b.mustVerify()
	assert.True(t, next.Unchanged == 1 && next.Entries > 0 && next.Entries <= 15,
		"the next pass read %d entries, %d balances unchanged", next.Entries, next.Unchanged)
	b.exec("UPDATE balances SET used = used - 1, expired = expired + 1 WHERE meter = 'credits'")
	assert.False(t, b.report().Clean(), "a balance that was changed without an entry is not noticed")
	b.exec("UPDATE balances SET used = used + 1, expired = expired - 1 WHERE meter = 'credits'")
	b.exec("UPDATE entries SET operation_id = 'x' WHERE operation_id = 'new'")
	report := b.verified(Options{Full: true})
	assert.True(t, !report.Clean() && !report.Incremental, "a full pass: %+v", report)
}

func TestVerify_FullPassInterrupted_NextContinues(t *testing.T) {
	t.Parallel()
	b := newBundle(t).history()
	b.exec("INSERT INTO meters (meter, unit) SELECT 'm' || n, 'unit' FROM generate_series(100, 399) n")
	b.exec("INSERT INTO balances (tenant_id, meter) SELECT 'acme', 'm' || n FROM generate_series(100, 399) n")
	b.exec("UPDATE refunds SET refunded = refunded - 1") // verify finds this after all balances of the tenant
	b.positionEvery = 0
	ctx, cancel := context.WithCancel(t.Context())
	pages := 0
	_, err := b.Verify(ctx, Options{Full: true, Copies: func(_ context.Context, keys []ledger.BalanceKey) ([]*ledger.BalanceCopy, error) {
		if pages++; pages == 2 {
			cancel()
			return nil, ctx.Err()
		}
		return make([]*ledger.BalanceCopy, len(keys)), nil
	}})
	require.Error(t, err, "the pass was not interrupted")
	report := b.verified(Options{Full: true})
	assert.False(t, report.CopiesCompared, "not all copies were compared")
	assert.True(t, report.Balances == 302 && report.Count == 1 && report.Entries >= 20,
		"the continued pass has %d balances, %d entries, %v", report.Balances, report.Entries, report.Differences)
	assert.Zero(t, one[int](b, "SELECT count(*) FROM full_pass"), "the position of the finished pass is still there")
}

// If no units remain to roll over, and the plan has a minimum, the entry of the minimum creates the rollover grant.
func TestVerify_RolloverOfMinimumAlone_Agrees(t *testing.T) {
	t.Parallel()
	b := newBundle(t).plan("floor", 10, "hour", "rollover_min = 4")
	b.signUp("acme", "floor")
	mustDo(b, debitOf("acme", "d1", 10))
	b.advance(time.Hour)
	mustDo(b, debitOf("acme", "d2", 1))
	b.mustVerify()
	const of = ` FROM grants g JOIN entries e USING (tenant_id, meter, subject, grant_id)
		WHERE g.source = 'rollover' AND e.kind = 'grant'`
	named, made := one[string](b, "SELECT g.operation_id"+of), one[string](b, "SELECT e.operation_id"+of)
	assert.Equal(t, named, made, "grant names operation %q, and was made by", named)
	b.exec("UPDATE grants SET operation_id = replace(operation_id, '-min', '') WHERE source = 'rollover'") // as older versions wrote it
	b.mustVerify()
}
