package ledger

import (
	"context"
	"slices"
	"time"
)

func sortKeys(keys []key) { slices.SortFunc(keys, compareKeys) }

// compare holds what is stored of every balance of the chunk against the journal's sums.
func (v *verification) compare(r *VerifyReport) {
	for _, k := range v.order {
		r.Balances++
		r.Entries += v.chains[k].count
		r.Periods += int64(len(v.periods[k]))
		r.Grants += int64(len(v.grants[k]))
		v.compareChain(k, r)
		v.comparePeriods(k, r)
		v.compareGrants(k, r)
		b := v.books[k]
		t := r.Totals[k.Meter]
		t.Remaining += b.remaining()
		t.Held += b.held
		for _, s := range v.sums[k] {
			t.Issued += s.granted
			t.Used += s.used
			t.Refunded += s.refunded
			t.Expired += s.expired
			t.Adjusted += s.adjusted
		}
		t.Partial = t.Partial || !v.whole(k)
		r.Totals[k.Meter] = t
	}
}

// conserve holds each meter's sums over all balances against each other: what came in is used, expired, held or still there.
func (r *VerifyReport) conserve() {
	for meter, t := range r.Totals {
		if !t.Partial {
			r.equal(key{Tenant: "*", Meter: meter}, "issued + refunded + adjusted = used + expired + remaining + held",
				t.Issued+t.Refunded+t.Adjusted, t.Used+t.Expired+t.Remaining+t.Held)
		}
	}
}

func (v *verification) compareChain(k key, r *VerifyReport) {
	b, c := v.books[k], v.chains[k]
	if c.count == 0 {
		r.equal(k, "newest entry", 0, b.seq)
		return
	}
	r.equal(k, "newest entry", c.last, b.seq)
	r.equal(k, "number of entries", c.last-c.first+1, c.count)
	if c.gap != 0 {
		r.add(k, "numbering of entries", "no gap", c.gap)
	}
	if c.broken != 0 {
		r.add(k, "remaining_after of an entry", "the one before it, and its amount", c.broken)
	}
	if c.backwards != 0 {
		r.add(k, "time of entries", "never backwards", c.backwards)
	}
	r.equal(k, "remaining", c.ending, b.remaining())
}

// whole says that the journal still holds the balance from its first entry on.
func (v *verification) whole(k key) bool { return v.chains[k].count == 0 || v.chains[k].first == 1 }

// comparePeriods checks each period's sums, that every period foots, and that closing and opening meet.
func (v *verification) comparePeriods(k key, r *VerifyReport) {
	b := v.books[k]
	byPeriod := map[int64]sums{}
	for _, s := range v.sums[k] {
		byPeriod[s.period.UnixMicro()] = byPeriod[s.period.UnixMicro()].plus(s)
	}
	list := v.periods[k]
	if b.opened() {
		list = append(slices.Clip(list), closedPeriod{
			key: k, start: b.start, end: b.end, opening: b.opening, granted: b.granted, refunded: b.refunded, used: b.used,
			expired: b.expired, adjusted: b.adjusted, overage: b.overage,
			closing: b.remaining() + b.held, lastSeq: b.seq,
		})
	}
	for i, p := range list {
		at := "period " + p.start.UTC().Format(time.RFC3339) + " "
		r.equal(k, at+"closing", p.opening+p.granted+p.refunded-p.used-p.expired+p.adjusted, p.closing)
		if i == 0 && v.whole(k) {
			r.equal(k, at+"opening", 0, p.opening)
		}
		if i > 0 {
			r.equal(k, at+"opening", list[i-1].closing, p.opening)
			if !p.start.Equal(list[i-1].end) {
				r.add(k, at+"start", list[i-1].end.UTC(), p.start.UTC())
			}
		}
		// A period is covered when its first entry was not dropped with an old partition.
		if covered := v.whole(k) || (i > 0 && list[i-1].lastSeq >= v.chains[k].first-1); !covered {
			continue
		}
		s := byPeriod[p.start.UnixMicro()]
		r.equal(k, at+"granted", s.granted, p.granted)
		r.equal(k, at+"used", s.used, p.used)
		r.equal(k, at+"expired", s.expired, p.expired)
		r.equal(k, at+"refunded", s.refunded, p.refunded)
		r.equal(k, at+"adjusted", s.adjusted, p.adjusted)
		r.equal(k, at+"overage", s.overage, p.overage)
		if i < len(list)-1 { // what it came to is forgiven at the end, or the next period begins with it
			r.equal(k, at+"overage at its end", s.overage, s.forgiven+byPeriod[list[i+1].start.UnixMicro()].owing)
		} else {
			r.equal(k, "owed", s.owed, b.owed)
			r.equal(k, "settled", s.settled, b.settled)
		}
		r.equal(k, at+"entries of unknown kind", 0, s.unknown)
		delete(byPeriod, p.start.UnixMicro())
	}
	if v.whole(k) {
		forgiven := int64(0)
		for _, s := range v.sums[k] {
			forgiven = max(forgiven, s.forgivenSeq)
		}
		r.equal(k, "entry that forgave overage", forgiven, b.forgivenSeq)
		for start := range byPeriod {
			r.add(k, "entries in a period that does not exist", "none", time.UnixMicro(start).UTC())
		}
	}
}

// compareGrants checks what is left of every grant, that open grants sum to remaining, and that the head burns first.
func (v *verification) compareGrants(k key, r *VerifyReport) {
	b := v.books[k]
	byGrant := map[string]sums{}
	for _, s := range v.sums[k] {
		byGrant[s.grant] = byGrant[s.grant].plus(s)
	}
	open, held := int64(0), int64(0)
	var first *grant
	for i := range v.grants[k] {
		g := &grant{GrantRecord: v.grants[k][i]}
		if g.ID == b.headID {
			g.Remaining = b.headRemaining
		}
		held += g.Held
		switch g.Status {
		case GrantActive:
			open += g.Remaining
			if g.Remaining > 0 && (first == nil || burnsBefore(g, first) < 0) {
				first = g
			}
		case GrantPending, GrantExhausted, GrantExpired, GrantVoided:
			r.equal(k, "remainder of "+string(g.Status)+" grant "+g.ID, 0, g.Remaining)
		}
		r.equal(k, "held of grant "+g.ID, v.held[grantKey{k, g.ID}], g.Held)
		if s := byGrant[g.ID]; v.whole(k) {
			r.equal(k, "remainder of grant "+g.ID, s.left, g.Remaining)
			// What refunds issue anew is entered as the refund; a grant voided before it took effect was never issued.
			if g.Status != GrantPending && g.Source != SourceRefund && s.issued != 0 {
				r.equal(k, "amount of grant "+g.ID, s.issued, g.Amount)
			}
		}
		delete(byGrant, g.ID)
	}
	delete(byGrant, "")
	for id := range byGrant {
		r.add(k, "grant of existing entries", "a row", "none: "+id)
	}
	r.equal(k, "sum of open grants", b.remaining(), open)
	r.equal(k, "sum of held in grants", b.held, held)
	if v.whole(k) {
		journal := int64(0)
		for _, s := range v.sums[k] {
			journal += s.held
		}
		r.equal(k, "held", journal, b.held)
	}
	// A head that was drawn to zero stays in place until the next draw reads the grants.
	if first != nil && b.headRemaining > 0 && first.ID != b.headID {
		r.add(k, "head grant", first.ID, b.headID)
	}
}

// verifyCopies compares cached copies with the balances they were made of. The copies are read first, so that none can be
// ahead of its balance unless something is wrong. One that is behind is not: it was published a moment ago, or its instance was
// killed before it could publish the next, and checks distrust it by its age.
func (l *Ledger) verifyCopies(ctx context.Context, v *verification, read CopyReader, r *VerifyReport) error {
	names := make([]BalanceKey, len(v.order))
	for i, k := range v.order {
		names[i] = BalanceKey(k)
	}
	copies, err := read(ctx, names)
	if err != nil {
		return err
	}
	books := map[key]*book{}
	c := columnsOf(v.order)
	rows, err := l.readers.Query(ctx, l.queries["SelectBalances"], c.tenants, c.meters, c.subjects)
	if err != nil {
		return unavailable("read balances of cached copies", err)
	}
	if err := scanBalances(books)(rows); err != nil {
		return unavailable("read balances of cached copies", err)
	}
	for i, c := range copies {
		b := books[v.order[i]]
		if c == nil || b == nil {
			continue
		}
		r.Copies++
		switch {
		case c.Seq < b.seq:
			r.StaleCopies++
		case c.Seq > b.seq:
			r.add(b.key, "cached copy's seq", b.seq, c.Seq)
		case c.Remaining != b.remaining() && l.estimate().Before(c.ValidUntil):
			r.add(b.key, "cached copy's remaining", b.remaining(), c.Remaining)
		}
	}
	return nil
}
