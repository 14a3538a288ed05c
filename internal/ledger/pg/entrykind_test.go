package pg

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/ledger"
	"github.com/quotasvc/quotasvc/internal/ledger/audit"
)

// TestEntryKind_MovesMatchAuditorSums compares two lists of entry kinds and the sums that they change: the list of
// package ledger, and the list of the auditor (package audit).
func TestEntryKind_MovesMatchAuditorSums(t *testing.T) {
	t.Parallel()
	for _, kind := range ledger.EntryKinds() {
		m, known := kind.Moves()
		got, audited := audit.MovedBy(string(kind))
		require.True(t, known && audited, "kind %s: the ledger knows it: %t, the auditor: %t", kind, known, audited)
		want := audit.Moved{
			Granted: m.Granted, Amended: m.Amended, Refunded: m.Refunded, Used: m.Used, Expired: m.Expired, Adjusted: m.Adjusted, Held: m.Held, Overage: m.Overage,
			Owed: m.Owed, Paid: m.Paid, Remaining: m.Remaining(),
		}
		assert.Equal(t, want, got, "%s: package ledger and the auditor add entries up differently", kind)
	}
	_, known := audit.MovedBy("gift")
	assert.False(t, known, "the auditor knows a kind that does not exist")
}
