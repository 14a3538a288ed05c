package model

import (
	"slices"
	"strings"

	"pgregory.net/rapid"

	"github.com/quotasvc/quotasvc/internal/ledger"
)

// check compares the stored rows with each other and with the entries. Grants, holds and balances must have the same
// sums, and the entries must add up to the sums of every period.
func (s *Memory) check(t *rapid.T) {
	byBalance := map[ledger.BalanceKey][]ledger.Entry{}
	for _, lines := range s.entries {
		for _, l := range lines {
			byBalance[l.BalanceKey] = append(byBalance[l.BalanceKey], l)
		}
	}
	for k, b := range s.balances {
		open, held := int64(0), int64(0)
		for id, g := range s.grants[k] {
			if id == b.HeadID {
				g.Remaining = b.HeadRemaining
			}
			if g.Status == ledger.GrantActive {
				open += g.Remaining
			} else if g.Remaining != 0 {
				t.Fatalf("%v: %s grant %s has %d left", k, g.Status, id, g.Remaining)
			}
			if g.Remaining+g.Held > g.Amount {
				t.Fatalf("%v: grant %s holds more than it was issued with: %+v", k, id, g)
			}
			held += g.Held
		}
		if open != b.Remaining() || held != b.Held {
			t.Fatalf("%v: the grants have %d open and %d held, the balance has %d and %d", k, open, held, b.Remaining(), b.Held)
		}
		reserved := int64(0)
		for _, l := range s.lines[k] {
			reserved += l.Open()
		}
		if reserved != b.Held {
			t.Fatalf("%v: the holds reserve %d, the balance has %d held", k, reserved, b.Held)
		}
		s.checkJournal(t, k, b, byBalance[k])
	}
}

// checkActors compares the actors of the newly decided calls with the actors of their entries.
func (s *Memory) checkActors(t *rapid.T, calls []*ledger.Call) {
	for _, c := range calls {
		if c.Err != nil || c.Replayed {
			continue
		}
		for _, e := range s.entries[c.ID] {
			if e.Actor != c.Actor {
				t.Fatalf("operation %v of %q: entry %d has actor %q", c.ID, c.Actor, e.Line, e.Actor)
			}
		}
	}
}

// checkJournal replays the entries of k. It checks that seq has no gap, that no entry is older than the entry before
// it, that no entry leaves less than 0, and that overage is entered only when nothing remains. The sums must equal the
// sums of the closed periods and of the balance.
func (s *Memory) checkJournal(t *rapid.T, k ledger.BalanceKey, b ledger.BalanceRow, lines []ledger.Entry) {
	slices.SortFunc(lines, func(a, b ledger.Entry) int { return int(a.Seq - b.Seq) })
	var sum ledger.Sums
	closed := s.periods[k]
	at := 0
	for i, l := range lines {
		if l.Seq != int64(i)+1 {
			t.Fatalf("%v: entry %d is numbered %d", k, i+1, l.Seq)
		}
		if i > 0 && l.CreatedAt.Before(lines[i-1].CreatedAt) {
			t.Fatalf("%v: time runs backwards at entry %d", k, l.Seq)
		}
		for at < len(closed) && !l.PeriodStart.Equal(closed[at].Start) {
			sum = s.closePeriod(t, k, sum, closed[at])
			at++
		}
		if strings.HasPrefix(l.OperationID, "§") && l.Actor != "" {
			t.Fatalf("%v: entry %d is the ledger's own, and has actor %s", k, l.Seq, l.Actor)
		}
		if l.Kind == ledger.EntryOverage && sum.Remaining() > 0 {
			t.Fatalf("%v: entry %d is overage, although %d units remain", k, l.Seq, sum.Remaining())
		}
		sum.Apply(l.Kind, l.Amount)
		if sum.Remaining() != l.RemainingAfter || sum.Remaining() < 0 {
			t.Fatalf("%v: entry %d (%s %d) leaves %d, replayed %d", k, l.Seq, l.Kind, l.Amount, l.RemainingAfter, sum.Remaining())
		}
	}
	for ; at < len(closed); at++ {
		sum = s.closePeriod(t, k, sum, closed[at])
	}
	if sum != b.Sums {
		t.Fatalf("%v: the balance differs from its entries: replayed %+v, stored %+v", k, sum, b.Sums)
	}
}

// closePeriod compares p with the sums of its entries, and returns the sums that the next period begins with.
func (s *Memory) closePeriod(t *rapid.T, k ledger.BalanceKey, sum ledger.Sums, p ledger.PeriodRow) ledger.Sums {
	sum.Owed, sum.Paid = 0, 0 // a closed period does not keep them
	if sum != p.Sums {
		t.Fatalf("%v: period %s differs from its entries: replayed %+v, stored %+v", k, p.Start, sum, p.Sums)
	}
	if closing := sum.Remaining() + sum.Held; p.Closing != closing {
		t.Fatalf("%v: period %s closes with %d, replayed %d", k, p.Start, p.Closing, closing)
	}
	return ledger.Sums{Opening: p.Closing, Held: sum.Held}
}
