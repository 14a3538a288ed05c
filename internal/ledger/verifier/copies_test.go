package verifier

import (
	"context"
	"testing"
	"time"

	"github.com/quotasvc/quotasvc/internal/ledger"
)

func TestVerify_CachedCopy_ImpossibleReported_OldCounted(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	b.simple("acme", 10)
	mustDo(b, debitOf("acme", "k1", 3))
	for _, tc := range []struct {
		name       string
		copy       *ledger.BalanceCopy
		count, old int64
	}{
		{"none", nil, 0, 0},
		{"equal", &ledger.BalanceCopy{Seq: 2, Remaining: 7, ValidUntil: time.Now().Add(time.Hour)}, 0, 0},
		{"behind", &ledger.BalanceCopy{Seq: 1, Remaining: 10, ValidUntil: time.Now().Add(time.Hour)}, 0, 1},
		{"of the same entry with another amount", &ledger.BalanceCopy{Seq: 2, Remaining: 8, ValidUntil: time.Now().Add(time.Hour)}, 1, 0},
		{"from the future", &ledger.BalanceCopy{Seq: 3, Remaining: 7, ValidUntil: time.Now().Add(time.Hour)}, 1, 0},
	} {
		report, err := b.Verify(t.Context(), Options{Copies: func(_ context.Context, keys []ledger.BalanceKey) ([]*ledger.BalanceCopy, error) {
			return []*ledger.BalanceCopy{tc.copy}, nil
		}})
		if err != nil {
			t.Fatal(err)
		}
		if report.Count != tc.count || report.StaleCopies != tc.old {
			t.Errorf("a copy %s: %d differences, %d old; want %d and %d", tc.name, report.Count, report.StaleCopies, tc.count, tc.old)
		}
	}
}
