package model

import (
	"slices"

	"pgregory.net/rapid"

	"github.com/quotasvc/quotasvc/internal/ledger"
)

// store writes the rows that b has changed. It fails t if a row violates a constraint of the schema.
func (s *Memory) store(t *rapid.T, b *ledger.Batch) {
	for k, book := range b.Books {
		if book.Broken != nil {
			t.Fatalf("balance %v: %v", k, book.Broken)
		}
	}
	changes := b.Changes()
	if s.stored != nil {
		s.stored(&changes)
	}
	s.storeEntries(t, changes.Entries)
	for _, book := range changes.Books {
		if book.Remaining() < 0 || book.HeadRemaining < 0 || book.HeadRemaining > book.Remaining() || book.Held < 0 || book.Overage < 0 {
			t.Fatalf("balance %v breaks a constraint: %+v", book.BalanceKey, book.BalanceRow)
		}
		s.balances[book.BalanceKey] = book.BalanceRow
	}
	for _, g := range changes.NewGrants {
		k := balanceOf(g)
		if _, exists := s.grants[k][g.ID]; exists {
			t.Fatalf("grant %v %s is issued twice", k, g.ID)
		}
		if s.grants[k] == nil {
			s.grants[k] = map[string]ledger.GrantRecord{}
		}
		s.grants[k][g.ID] = g.GrantRecord
	}
	for _, g := range changes.Grants {
		s.grants[balanceOf(g)][g.ID] = g.GrantRecord
	}
	s.storeHolds(&changes)
	for i := range changes.Periods {
		k := changes.Periods[i].BalanceKey
		s.periods[k] = append(s.periods[k], changes.Periods[i])
	}
	for _, o := range changes.Overflows {
		s.paid[paidPeriod{ledger.BalanceKey{Tenant: o.Tenant, Meter: o.Meter}, o.Period.UnixMicro()}] += o.Units
	}
	for _, r := range changes.Refunds {
		s.refunds[r.EntryKey] = ledger.RefundSum{Amount: r.Amount, Units: r.Units}
	}
}

func (s *Memory) storeEntries(t *rapid.T, entries []ledger.Entry) {
	for _, e := range entries {
		id := ledger.OperationID{Tenant: e.Tenant, Key: e.OperationID}
		if slices.ContainsFunc(s.entries[id], func(have ledger.Entry) bool {
			return have.Line == e.Line && ledger.MonthOf(have.CreatedAt) == ledger.MonthOf(e.CreatedAt)
		}) {
			t.Fatalf("entry %v line %d is written twice", id, e.Line)
		}
		s.entries[id] = append(s.entries[id], e)
	}
}

func (s *Memory) storeHolds(changes *ledger.Changes) {
	for _, h := range changes.Holds {
		s.holds[h.HoldKey] = ledger.HoldRow{
			HoldKey: h.HoldKey, Subject: h.Subject, Status: h.Status, Items: h.Items, CreatedAt: h.CreatedAt, ExpiresAt: h.ExpiresAt,
		}
	}
	for _, h := range changes.NewHoldLines {
		s.lines[h.BalanceKey] = append(s.lines[h.BalanceKey], lineRow(h))
	}
	for _, h := range changes.HoldLines {
		lines := s.lines[h.BalanceKey]
		at := slices.IndexFunc(lines, func(l ledger.HoldLine) bool { return l.HoldID == h.HoldID && l.Line == h.Line })
		lines[at] = lineRow(h)
	}
}

// lineRow returns h as a table stores it: without the marks of changes.
func lineRow(h *ledger.HoldLine) ledger.HoldLine {
	return ledger.HoldLine{
		BalanceKey: h.BalanceKey, HoldID: h.HoldID, Line: h.Line, Item: h.Item, Grant: h.Grant, Source: h.Source, Price: h.Price, Per: h.Per, Paid: h.Paid,
		Amount: h.Amount, Captured: h.Captured, Returned: h.Returned, ExpiresAt: h.ExpiresAt,
		PaysFor: h.PaysFor, Deferred: h.Deferred, Refunded: h.Refunded, Beyond: h.Beyond,
	}
}

func balanceOf(g *ledger.OpenGrant) ledger.BalanceKey {
	return ledger.BalanceKey{Tenant: g.Tenant, Meter: g.Meter, Subject: g.Subject}
}
