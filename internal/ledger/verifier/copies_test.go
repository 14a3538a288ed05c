package verifier

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/ledger"
)

func TestVerify_CachedCopy_ImpossibleReported_OldCounted(t *testing.T) {
	t.Parallel()
	b := newBundle(t).simple("acme", 10)
	mustDo(b, debitOf("acme", "k1", 3))
	next := one[time.Time](b, "SELECT next_event_at FROM balances")
	for _, tc := range []struct {
		name       string
		copy       *ledger.BalanceCopy
		count, old int64
	}{
		{"none", nil, 0, 0},
		{"equal", &ledger.BalanceCopy{Seq: 2, Remaining: 7, ValidUntil: next}, 0, 0},
		{"behind", &ledger.BalanceCopy{Seq: 1, Remaining: 10, ValidUntil: next}, 0, 1},
		{"of the same entry with another amount", &ledger.BalanceCopy{Seq: 2, Remaining: 8, ValidUntil: next}, 1, 0},
		{"of a later instant, when something was due", &ledger.BalanceCopy{Seq: 2, Remaining: 10, AsOf: next, ValidUntil: next.AddDate(0, 1, 0)}, 0, 1},
		{"with entries that a read derived", &ledger.BalanceCopy{Seq: 4, Remaining: 20, ValidUntil: next, Derived: true}, 0, 1},
		{"from the future", &ledger.BalanceCopy{Seq: 3, Remaining: 7, ValidUntil: next}, 1, 0},
	} {
		report := b.verified(Options{Copies: cached(tc.copy, nil)})
		assert.True(t, report.Count == tc.count && report.StaleCopies == tc.old,
			"a copy %s: %d differences, %d old; want %d and %d", tc.name, report.Count, report.StaleCopies, tc.count, tc.old)
	}
}

// cached returns a reader of a cache with one copy, or with an error.
func cached(c *ledger.BalanceCopy, err error) CopyReader {
	return func(context.Context, []ledger.BalanceKey) ([]*ledger.BalanceCopy, error) {
		return []*ledger.BalanceCopy{c}, err
	}
}

// If the cache with the copies does not answer, verify names this error and reports no difference.
func TestVerify_CacheAway_Named(t *testing.T) {
	t.Parallel()
	b := newBundle(t).simple("acme", 10)
	mustDo(b, debitOf("acme", "k1", 3))
	b.copiesPatience = 0
	_, err := b.Verify(t.Context(), Options{Copies: cached(nil, errors.New("i/o timeout"))})
	e, ok := errors.AsType[*errcode.Error](err)
	assert.True(t, ok && e.Code == errcode.Unavailable && strings.Contains(e.Detail, "Redis does not answer"), err)
}

// A cache that is late with an answer now and then does not end a verification.
func TestReadPatiently_CacheLate_ReadAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		asked, late := 0, 3
		read := func(ctx context.Context, keys []ledger.BalanceKey) ([]*ledger.BalanceCopy, error) {
			if asked++; asked <= late {
				return nil, errors.New("i/o timeout")
			}
			return make([]*ledger.BalanceCopy, len(keys)), nil
		}
		copies, err := readPatiently(t.Context(), read, make([]ledger.BalanceKey, 2), copiesPatience)
		require.NoError(t, err)
		require.Len(t, copies, 2)
		asked, late = 0, 1_000_000
		began := time.Now()
		_, err = readPatiently(t.Context(), read, nil, copiesPatience)
		require.Error(t, err)
		require.GreaterOrEqual(t, time.Since(began), copiesPatience)
	})
}

// A check processes due events in memory, and publishes the result as a copy. The copy may have entries that the row of
// the balance does not have yet. Such a copy is not a difference, whatever was due.
func TestVerify_CopyOfCheckWithDueEvents_NoDifference(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		due       func(*bundle)
		remaining int64
	}{
		"period end":   {func(b *bundle) { b.advance(time.Hour) }, 100},
		"idle periods": {func(b *bundle) { b.advance(9 * time.Hour) }, 100},
		"end of a hold": {func(b *bundle) {
			mustDo(b, &ledger.Hold{Tenant: "acme", Key: "h", HoldID: "h1", TTL: time.Minute, Items: []ledger.Item{{Meter: "api_calls", Amount: 20}}})
			b.advance(2 * time.Minute)
		}, 70},
		"beginning of a grant": {func(b *bundle) {
			g := topupOf("acme", "g", "api_calls", 5)
			g.EffectiveAt = b.now().Add(time.Minute)
			mustDo(b, g)
			b.advance(2 * time.Minute)
		}, 75},
		"end of a grant": {func(b *bundle) {
			g := topupOf("acme", "g", "api_calls", 5)
			g.ExpiresAt = b.now().Add(time.Minute)
			mustDo(b, g)
			b.advance(2 * time.Minute)
		}, 70},
		"terms that apply at once": {func(b *bundle) { b.changeNow("acme", "larger") }, 120},
		"terms that lack the meter": {func(b *bundle) {
			b.exec("INSERT INTO plans (plan, version, created_at) VALUES ('empty', 1, $1)", b.now().AddDate(-1, 0, 0))
			b.changeNow("acme", "empty")
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBundle(t).plan("hourly", 100, "hour", "").plan("larger", 150, "hour", "")
			b.signUp("acme", "hourly")
			mustDo(b, debitOf("acme", "k1", 30))
			tc.due(b)
			seq := one[int64](b, "SELECT seq FROM balances")
			out := b.ledger.CheckBatch(t.Context(), []ledger.CheckRequest{{Tenant: "acme", Items: []ledger.Item{{Meter: "api_calls", Amount: 1}}}})
			b.must(out[0].Err)
			copied := out[0].Result.Copies[0]
			require.True(t, copied.Seq > seq && copied.Remaining == tc.remaining, "the row has seq %d, the check's view is %+v", seq, copied)
			report := b.verified(Options{Copies: cached(&copied, nil)})
			assert.True(t, report.Count == 0 && report.Copies == 1 && report.StaleCopies == 1 && report.CopiesCompared,
				"%d copies, %d of another instant, differences %v", report.Copies, report.StaleCopies, report.Differences)
		})
	}
}
