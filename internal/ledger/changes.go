package ledger

import (
	"cmp"
	"slices"
	"time"
)

// Changes are the rows that a batch has changed, for the store to write.
type Changes struct {
	Entries      []Entry
	Books        []*Book // books whose BalanceRow has changed; empty: there is nothing to write
	NewGrants    []*OpenGrant
	Grants       []*OpenGrant
	Periods      []PeriodRow // closed periods to be inserted
	Holds        []*HoldRow  // new and changed holds
	NewHoldLines []*HoldLine
	HoldLines    []*HoldLine
	Refunds      []RefundRow // new and changed rows
	Overflows    []OverflowRow
}

// OverflowRow says how many more units of a meter another meter has paid for, in the meter's period that starts at Period
// and in the quarter of an hour that starts at Quarter. Several rows may differ only in their sums.
type OverflowRow struct {
	Tenant, Meter, PaidBy string
	Period, Quarter       time.Time
	Units                 int64
	Operations            int64 // 1 for the first entry of an operation about use of the meter, else 0
}

// RefundRow is a row of the table refunds: the refunded part of an entry.
type RefundRow struct {
	EntryKey

	Amount int64
	Units  int64 // see RefundSum
}

// Changes returns the rows to write. It is called once, after Decide or Roll. Broken books are left out: no
// operation on such a book succeeded.
func (b *Batch) Changes() Changes {
	b.chainEntries()
	c := Changes{Entries: b.journal, Overflows: b.overflows()}
	for _, book := range b.Books {
		if book.Broken != nil || !book.changed {
			continue
		}
		c.Books = append(c.Books, book)
		c.Periods = append(c.Periods, book.Closed...)
		c.NewGrants = append(c.NewGrants, book.ended...)
		for _, g := range book.Grants {
			switch {
			case g.isNew:
				c.NewGrants = append(c.NewGrants, g)
			case g.changed:
				c.Grants = append(c.Grants, g)
			}
		}
		for _, h := range book.Holds {
			switch {
			case h.isNew:
				c.NewHoldLines = append(c.NewHoldLines, h)
			case h.changed:
				c.HoldLines = append(c.HoldLines, h)
			}
		}
	}
	if len(b.Targets.Holds)+len(b.Targets.Refunds) > 0 {
		b.addTargets(&c)
	}
	return c
}

// addTargets adds the holds and refunds that changed.
func (b *Batch) addTargets(c *Changes) {
	for _, h := range b.Targets.Holds {
		if h.changed {
			c.Holds = append(c.Holds, h)
		}
	}
	slices.SortFunc(c.Holds, func(a, b *HoldRow) int { return cmp.Or(cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.ID, b.ID)) })
	for k, s := range b.Targets.Refunds {
		if s.changed {
			c.Refunds = append(c.Refunds, RefundRow{k, s.Amount, s.Units})
		}
	}
}

// OverflowStep is the time of a row of overflows. In every time zone, hours and days begin at an end of a quarter of an
// hour, so reports add up whole rows.
const OverflowStep = 15 * time.Minute

// overflows returns a row for each new entry of an overflow meter that paid for units. The store adds up the rows.
func (b *Batch) overflows() []OverflowRow {
	var out []OverflowRow
	for i := range b.journal {
		e := &b.journal[i]
		paid := overflowOf(e)
		if paid == nil || paid.Units == 0 || paid.Period.IsZero() {
			continue
		}
		row := OverflowRow{
			Tenant: e.Tenant, Meter: paid.For, PaidBy: e.Meter,
			Period: paid.Period, Quarter: e.CreatedAt.UTC().Truncate(OverflowStep), Units: paid.Units,
		}
		if b.firstUse(e, paid.For) {
			row.Operations = 1
		}
		out = append(out, row)
	}
	return out
}

// firstUse reports whether e is the first entry of its operation about use of a meter: an entry of use of the tenant's
// balance, or a payment for it.
func (b *Batch) firstUse(e *Entry, meter string) bool {
	for _, o := range b.Stored[OperationID{e.Tenant, e.OperationID}] {
		uses := o.Kind == EntryDebit || o.Kind == EntryCapture || o.Kind == EntryOverage
		paid := overflowOf(&o)
		switch {
		case uses && o.Meter == meter && o.Subject == "":
			return false
		case paid != nil && paid.For == meter && paid.Units > 0 && o.Line < e.Line:
			return false
		}
	}
	return true
}
