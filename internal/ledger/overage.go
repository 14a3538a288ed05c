package ledger

import "time"

// closeOverage ends the overage of the period that closes at at: its terms forgive it, or leave it to the next period.
func (b *book) closeOverage(at, now time.Time, j *journal) {
	if b.overage == 0 {
		return
	}
	if b.terms.preserves() {
		b.owing = b.overage
		return
	}
	j.add(b, now, line{
		operationID: systemID("forgive", b.key, instantID(b.start)), line: 1, kind: lineForgive, source: SourceOverage, amount: b.overage,
		effectiveAt: &at,
	})
	b.forgivenSeq = b.seq
}

// openOverage begins a period with what the one before it left owed. g, the new allowance, pays of it what it can; nothing else
// ever does. g is nil where the period has none.
func (b *book) openOverage(g *grant, due, now time.Time, j *journal) {
	owing := b.owing
	if owing == 0 {
		return
	}
	b.owing, b.overage, b.owed = 0, owing, owing
	j.add(b, now, line{
		operationID: systemID("owe", b.key, instantID(b.start)), line: 1, kind: lineOwe, source: SourceOverage, amount: owing, effectiveAt: &due,
	})
	if g == nil {
		return
	}
	paid := min(owing, g.Remaining)
	b.setRemaining(g, g.Remaining-paid)
	b.used += paid
	b.settled = paid
	b.overage, b.owed = b.overage-paid, b.owed-paid
	j.system(b, lineSettle, systemID("settle", b.key, instantID(b.start)), 1, g, paid, due, now)
}

// nextAllowance is what the end of the open period brings: the allowance, less what it would have to pay of overage.
func (b *book) nextAllowance() int64 {
	if b.terms.preserves() {
		return max(0, b.allowance-b.overage)
	}
	return b.allowance
}

// refundOverage takes n of the overage line l back and returns n. Overage of the open period just shrinks. Of an earlier period,
// first what is still owed is taken off; then what this period's allowance has paid comes back to it; what an earlier allowance
// has paid ended with it, and is issued anew only when asked for. What was forgiven was nobody's to pay, and moves nothing.
func (r *Refund) refundOverage(m *machine, b *book, l *line, n int64, out *RefundItem) int64 {
	detail := refundDetail{RefundOf: r.OperationID, Line: l.line}
	enter := func(kind string, amount int64) {
		if amount == 0 {
			return
		}
		m.journal.add(b, m.now, line{kind: kind, source: SourceOverage, amount: amount, item: l.item, detail: mustJSON(detail)})
		if out != nil {
			out.Draws = append(out.Draws, Draw{Source: SourceOverage, Meter: l.Meter, Amount: amount})
		}
	}
	switch {
	case b.start.Equal(l.periodStart):
		b.overage -= n
		enter(lineUnoverage, n)
		return n
	case l.seq <= b.forgivenSeq:
		enter(lineClosedRefund, n)
		return n
	}
	owed := min(n, b.owed)
	b.overage, b.owed = b.overage-owed, b.owed-owed
	enter(lineUnowe, owed)
	paid := min(n-owed, b.settled)
	if paid > 0 {
		settler := b.settler()
		b.settled -= paid
		r.giveBack(m, b, line{kind: lineUnsettle, grantID: settler, source: SourceAllowance, item: l.item, line: l.line}, paid, out)
	}
	switch ended := n - owed - paid; {
	case ended > 0 && r.Return == ReturnRegrant:
		r.giveBack(m, b, line{kind: lineRefund, source: SourceAllowance, item: l.item, line: l.line}, ended, out)
	default:
		enter(lineClosedRefund, ended)
	}
	return n
}
