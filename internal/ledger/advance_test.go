package ledger

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/quotasvc/quotasvc/internal/kit/period"
)

// A long backlog of due events is processed in rounds of advanceStepsMax events. If a read is cancelled, it ends
// between two rounds.
func TestAdvanceInMemory_LongBacklog_EndsWhenTold(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	k := BalanceKey{Tenant: "acme", Meter: "calls"}
	const events = 3 * advanceStepsMax
	load := func() *Batch {
		book := NewBook(BalanceRow{BalanceKey: k, Start: start, End: period.Forever, NextEvent: start, UpdatedAt: start, RollAt: start})
		var grants []*OpenGrant
		for i := range events {
			grants = append(grants, &OpenGrant{GrantRecord: GrantRecord{
				Tenant: k.Tenant, Meter: k.Meter, ID: fmt.Sprintf("g%04d", i), Source: SourceTopup, Amount: 1, Status: GrantPending,
				EffectiveAt: start.Add(time.Duration(i) * time.Second), ExpiresAt: period.Forever,
			}})
		}
		book.LoadGrants(grants, nil)
		b := NewBatch()
		b.Now, b.Books[k] = start.AddDate(1, 0, 0), book
		return b
	}
	over, asked := errors.New("the time is over"), 0
	b := load()
	if err := b.AdvanceInMemory(func() error { asked++; return over }); !errors.Is(err, over) || asked != 1 || b.Books[k].Granted != advanceStepsMax {
		t.Errorf("got %v after %d questions and %d events", err, asked, b.Books[k].Granted)
	}
	b = load()
	if err := b.AdvanceInMemory(nil); err != nil || b.Books[k].Granted != events {
		t.Errorf("got %v and %d events, want %d", err, b.Books[k].Granted, events)
	}
}
