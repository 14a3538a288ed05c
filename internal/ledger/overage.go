package ledger

import (
	"slices"
	"time"
)

// closeOverage ends the overage of the period that closes at the instant `at`. Either the period's terms forgive the
// overage, or the next period owes it. closeOverage returns the amount that the next period owes.
func (b *Book) closeOverage(at, now time.Time, j *[]Entry) (owing int64) {
	if b.Overage == 0 {
		return 0
	}
	if b.Terms.preserves() {
		return b.Overage
	}
	b.enter(j, now, Entry{
		OperationID: systemID("forgive", b.BalanceKey, instantID(b.Start)), Line: 1, Kind: EntryForgive, Source: SourceOverage,
		Amount: b.Overage, EffectiveAt: at,
	})
	b.ForgivenSeq = b.Seq
	return 0
}

// openOverage records that the open period owes overage of earlier periods. The grants that open with the period pay
// as much as they can: first the allowance, then the rollover. No other grant ever pays overage. payers has nil for a
// grant that the period does not have.
func (b *Book) openOverage(owing int64, payers []*OpenGrant, due, now time.Time, j *[]Entry) {
	if owing == 0 {
		return
	}
	b.enter(j, now, Entry{
		OperationID: systemID("owe", b.BalanceKey, instantID(b.Start)), Line: 1, Kind: EntryOwe, Source: SourceOverage,
		Amount: owing, EffectiveAt: due,
	})
	line := int32(0)
	for _, g := range payers {
		if g == nil || owing == 0 {
			continue
		}
		paid := min(owing, g.Remaining)
		owing -= paid
		line++
		b.setRemaining(g, g.Remaining-paid)
		b.enterDue(j, EntryPayOwed, systemID("settle", b.BalanceKey, instantID(b.Start)), line, g, paid, due, now)
	}
}

// paidOldOverage reports whether g is a grant that may have paid overage of earlier periods. Such a grant stays open
// even when it is used up. A refund of that overage must find the grant, and the old entries do not name it.
func (b *Book) paidOldOverage(g *OpenGrant) bool {
	return b.Paid > 0 && (g.Source == SourceAllowance || g.Source == SourceRollover) && g.EffectiveAt.Equal(b.Start)
}

// payers divides n units, which had paid overage of earlier periods, among the grants to which they return. The units
// that were paid last return first; the rollover paid after the allowance.
func (b *Book) payers(n int64) []Draw {
	allowance := Draw{Grant: allowanceID(b.Start), Source: SourceAllowance}
	rollover, most := Draw{Source: SourceRollover}, int64(0)
	for _, g := range b.Grants {
		switch {
		case !b.paidOldOverage(g):
		case g.Source == SourceAllowance:
			allowance.Grant, most = g.ID, g.Amount
		default:
			rollover.Grant = g.ID
		}
	}
	if rollover.Grant != "" {
		rollover.Amount = min(n, max(0, b.Paid-most))
	}
	allowance.Amount = n - rollover.Amount
	return slices.DeleteFunc([]Draw{rollover, allowance}, func(d Draw) bool { return d.Amount == 0 })
}

// refundOverage takes back n units of the overage entry e. If e is of the open period, the overage of that period
// decreases. If e is of an earlier period, the overage that is still owed decreases first. Then units return to the
// open period's grants, up to the units that these grants paid. Grants of earlier periods may have paid as well, but
// they have ended: their units are issued anew only if the refund requests it, or return to the open allowance as far as
// they had been taken off it. A refund of forgiven overage moves no units.
func (r *Refund) refundOverage(b *Batch, book *Book, e *Entry, n int64, out *RefundItem) {
	detail := mustJSON(r.detailOf(e))
	enter := func(kind EntryKind, amount int64) {
		if amount == 0 {
			return
		}
		b.enter(book, Entry{Kind: kind, Source: SourceOverage, Amount: amount, Item: e.Item, Detail: detail})
		if out != nil {
			out.Draws = append(out.Draws, Draw{Source: SourceOverage, Meter: e.Meter, Amount: amount})
		}
	}
	switch {
	case book.Start.Equal(e.PeriodStart):
		enter(EntryRefundOverage, n)
		return
	case e.Seq <= book.ForgivenSeq:
		if !e.CreatedAt.Before(book.CarriedFrom) {
			book.OverageBefore = max(0, book.OverageBefore-n)
		}
		enter(EntryRefundClosed, n)
		return
	}
	owed := min(n, book.Owed)
	enter(EntryRefundOwed, owed)
	paid := min(n-owed, book.Paid)
	for _, part := range book.payers(paid) {
		r.giveBack(b, book, Entry{Kind: EntryRefundPaid, Grant: part.Grant, Source: part.Source, Item: e.Item}, e, part.Amount, out)
	}
	ended := n - owed - paid
	back := ended
	if r.Return != ReturnRegrant {
		back = min(ended, book.carriedSince(e.CreatedAt, b.Now))
	}
	if back > 0 {
		r.giveBack(b, book, Entry{Kind: EntryRefund, Source: SourceAllowance, Item: e.Item}, e, back, out)
	}
	if ended > back {
		d := r.detailOf(e)
		d.Paid = true
		detail = mustJSON(d)
		enter(EntryRefundClosed, ended-back)
	}
}
