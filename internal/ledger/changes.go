package ledger

import (
	"cmp"
	"slices"
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
}

// RefundRow is a row of the table refunds: the refunded part of an entry.
type RefundRow struct {
	EntryKey

	Amount int64
	Units  int64 // see RefundSum
}

// Changes returns the rows to write. It is called once, after Decide or RollTo. Broken books are left out: no
// operation on such a book succeeded.
func (b *Batch) Changes() Changes {
	b.chainEntries()
	c := Changes{Entries: b.journal}
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
