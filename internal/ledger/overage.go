package ledger

import "time"

// closeOverage ends the overage of the period that closes at the instant at. Its terms forgive it, or leave it to the next
// period.
func (b *Book) closeOverage(at, now time.Time, j *[]Entry) {
	if b.Overage == 0 {
		return
	}
	if b.Terms.preserves() {
		b.owing = b.Overage
		return
	}
	b.enter(j, now, Entry{
		OperationID: systemID("forgive", b.BalanceKey, instantID(b.Start)), Line: 1, Kind: EntryForgive, Source: SourceOverage,
		Amount: b.Overage, EffectiveAt: at,
	})
	b.ForgivenSeq = b.Seq
}

// openOverage begins a period with what the period before it left owed. The new allowance g pays what it can; nothing else ever
// pays it. g is nil where the period has no allowance.
func (b *Book) openOverage(g *OpenGrant, due, now time.Time, j *[]Entry) {
	owing := b.owing
	if owing == 0 {
		return
	}
	b.owing = 0
	b.enter(j, now, Entry{
		OperationID: systemID("owe", b.BalanceKey, instantID(b.Start)), Line: 1, Kind: EntryOwe, Source: SourceOverage,
		Amount: owing, EffectiveAt: due,
	})
	if g == nil {
		return
	}
	paid := min(owing, g.Remaining)
	b.setRemaining(g, g.Remaining-paid)
	b.enterDue(j, EntryPayOwed, systemID("settle", b.BalanceKey, instantID(b.Start)), 1, g, paid, due, now)
}

// nextAllowance returns what the end of the open period brings: the allowance, less the overage that it would have to pay.
func (b *Book) nextAllowance() int64 {
	if b.Terms.preserves() {
		return max(0, b.Allowance-b.Overage)
	}
	return b.Allowance
}

// paidOldOverage reports whether g is the allowance that paid overage of earlier periods. It stays open even when it is used
// up: a refund of that overage must find it, and the old entries do not name it.
func (b *Book) paidOldOverage(g *OpenGrant) bool {
	return b.Paid > 0 && g.Source == SourceAllowance && g.EffectiveAt.Equal(b.Start)
}

// payer returns the id of the grant that paid overage of earlier periods.
func (b *Book) payer() string {
	for _, g := range b.Grants {
		if b.paidOldOverage(g) {
			return g.ID
		}
	}
	return allowanceID(b.Start)
}

// refundOverage takes back n units of the overage entry e. Overage of the open period shrinks. Of an earlier period's overage, what
// is still owed is taken off first. Then what this period's allowance has paid comes back to it. What an earlier allowance has
// paid ended with that allowance: it is issued anew only if the refund asks for it. What was forgiven moves nothing.
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
		enter(EntryRefundClosed, n)
		return
	}
	owed := min(n, book.Owed)
	enter(EntryRefundOwed, owed)
	paid := min(n-owed, book.Paid)
	if paid > 0 {
		r.giveBack(b, book, Entry{Kind: EntryRefundPaid, Grant: book.payer(), Source: SourceAllowance, Item: e.Item}, e, paid, out)
	}
	switch ended := n - owed - paid; {
	case ended > 0 && r.Return == ReturnRegrant:
		r.giveBack(b, book, Entry{Kind: EntryRefund, Source: SourceAllowance, Item: e.Item}, e, ended, out)
	default:
		enter(EntryRefundClosed, ended)
	}
}
