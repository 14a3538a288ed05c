package ledger

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/kit/period"
)

// A hold is created after a batch has looked for its balances, and before the batch reads its row. For this batch the
// hold does not exist. The batch may know some of its lines, because other calls have asked for their balance.
func TestHoldChange_CreatedMeanwhile_DoesNotExistForTheBatch(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	k := BalanceKey{Tenant: "acme", Meter: "calls"}
	for _, action := range []HoldAction{ActionCapture, ActionRelease, ActionExtend} {
		for _, lines := range []int{0, 1} {
			row := BalanceRow{BalanceKey: k, Start: now, End: period.Forever, NextEvent: period.Forever, UpdatedAt: now}
			book := NewBook(row)
			grant := GrantRecord{
				Tenant: "acme", Meter: "calls", ID: "g1", Source: SourceTopup, Amount: 5, Held: 5, Status: GrantActive,
				EffectiveAt: now, ExpiresAt: period.Forever,
			}
			line := &HoldLine{
				BalanceKey: k, HoldID: "h1", Line: 1, Grant: "g1", Price: 1, Per: 1, Amount: 5,
				ExpiresAt: now.AddDate(0, 0, 1),
			}
			book.LoadGrants([]*OpenGrant{{GrantRecord: grant}}, []*HoldLine{line}[:lines])
			b := NewBatch()
			b.Now, b.Books[k], b.Targets = now, book, NewTargetState()
			hold := HoldKey{"acme", "h1"}
			items := []HoldItem{{Meter: "calls", Amount: 9}}
			b.Targets.Holds[hold] = &HoldRow{HoldKey: hold, Status: HoldActive, Items: items}
			c := NewCall(&HoldChange{Tenant: "acme", Key: "k1", HoldID: "h1", Action: action, TTL: time.Hour})
			next := b.Decide([]*Call{c})
			assert.Equal(t, Next{}, next)
			assert.Equal(t, errcode.HoldNotFound, errcode.Of(c.Err), "%s with %d lines: %v", action, lines, c.Err)
			assert.Empty(t, b.Changes().Holds)
		}
	}
}
