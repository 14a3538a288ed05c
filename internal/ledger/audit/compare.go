package audit

import (
	"slices"
	"time"
)

// compare compares what is stored of every balance of the chunk with the journal's sums.
func (c *chunk) compare(r *Report) {
	for _, k := range c.order {
		r.Balances++
		r.Entries += c.chains[k].count
		r.Periods += int64(len(c.periods[k]))
		r.Grants += int64(len(c.grants[k]))
		c.compareChain(k, r)
		c.comparePeriods(k, r)
		c.compareGrants(k, r)
		b := c.balances[k]
		t := r.Totals[k.Meter]
		t.Remaining += b.remaining()
		t.Held += b.held
		for _, s := range c.sums[k] {
			t.Issued += s.granted
			t.Used += s.used
			t.Refunded += s.refunded
			t.Expired += s.expired
			t.Adjusted += s.adjusted
		}
		t.Partial = t.Partial || !c.whole(k)
		r.Totals[k.Meter] = t
	}
}

// conserve compares each meter's sums over all balances: what came in was used, expired, is held or is still there.
func (r *Report) conserve() {
	for meter, t := range r.Totals {
		if !t.Partial {
			r.equal(Key{Tenant: "*", Meter: meter}, "issued + refunded + adjusted = used + expired + remaining + held",
				t.Issued+t.Refunded+t.Adjusted, t.Used+t.Expired+t.Remaining+t.Held)
		}
	}
}

func (c *chunk) compareChain(k Key, r *Report) {
	b, chain := c.balances[k], c.chains[k]
	if chain.count == 0 {
		r.equal(k, "newest entry", 0, b.seq)
		return
	}
	r.equal(k, "newest entry", chain.last, b.seq)
	r.equal(k, "number of entries", chain.last-chain.first+1, chain.count)
	if chain.gap != 0 {
		r.add(k, "numbering of entries", "no gap", chain.gap)
	}
	if chain.broken != 0 {
		r.add(k, "remaining_after of an entry", "the one before it, and its amount", chain.broken)
	}
	if chain.backwards != 0 {
		r.add(k, "time of entries", "never backwards", chain.backwards)
	}
	r.equal(k, "remaining", chain.ending, b.remaining())
}

// whole reports whether the journal still has the balance's entries from the first one on.
func (c *chunk) whole(k Key) bool {
	return c.chains[k].count == 0 || c.chains[k].first == 1
}

// comparePeriods checks each period's sums, that every period foots, and that closing and opening meet.
func (c *chunk) comparePeriods(k Key, r *Report) {
	b := c.balances[k]
	byPeriod := map[int64]sums{}
	for _, s := range c.sums[k] {
		byPeriod[s.period.UnixMicro()] = byPeriod[s.period.UnixMicro()].plus(s)
	}
	list := c.periods[k]
	if b.opened() {
		list = append(slices.Clip(list), period{
			start: b.start, end: b.end, opening: b.opening, granted: b.granted, refunded: b.refunded, used: b.used,
			expired: b.expired, adjusted: b.adjusted, overage: b.overage,
			closing: b.remaining() + b.held, lastSeq: b.seq,
		})
	}
	for i, p := range list {
		at := "period " + p.start.UTC().Format(time.RFC3339) + " "
		r.equal(k, at+"closing", p.opening+p.granted+p.refunded-p.used-p.expired+p.adjusted, p.closing)
		if i == 0 && c.whole(k) {
			r.equal(k, at+"opening", 0, p.opening)
		}
		if i > 0 {
			r.equal(k, at+"opening", list[i-1].closing, p.opening)
			if !p.start.Equal(list[i-1].end) {
				r.add(k, at+"start", list[i-1].end.UTC(), p.start.UTC())
			}
		}
		// A period is covered when its first entry was not dropped with an old partition.
		if covered := c.whole(k) || (i > 0 && list[i-1].lastSeq >= c.chains[k].first-1); !covered {
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
	if c.whole(k) {
		forgiven := int64(0)
		for _, s := range c.sums[k] {
			forgiven = max(forgiven, s.forgivenSeq)
		}
		r.equal(k, "entry that forgave overage", forgiven, b.forgivenSeq)
		for start := range byPeriod {
			r.add(k, "entries in a period that does not exist", "none", time.UnixMicro(start).UTC())
		}
	}
}

// compareGrants checks what is left of every grant, that open grants sum to remaining, and that the head burns first.
func (c *chunk) compareGrants(k Key, r *Report) {
	b := c.balances[k]
	byGrant := map[string]sums{}
	for _, s := range c.sums[k] {
		byGrant[s.grant] = byGrant[s.grant].plus(s)
	}
	open, held := int64(0), int64(0)
	var first *grant
	for i := range c.grants[k] {
		g := &c.grants[k][i]
		if g.id == b.headID {
			g.remaining = b.headRemaining // the stored remainder of the head is old
		}
		held += g.held
		switch g.status {
		case "active":
			open += g.remaining
			if g.remaining > 0 && (first == nil || g.burnsBefore(first)) {
				first = g
			}
		default:
			r.equal(k, "remainder of "+g.status+" grant "+g.id, 0, g.remaining)
		}
		r.equal(k, "held of grant "+g.id, c.held[grantKey{k, g.id}], g.held)
		if s := byGrant[g.id]; c.whole(k) {
			r.equal(k, "remainder of grant "+g.id, s.left, g.remaining)
			// What refunds issue anew is entered as the refund; a grant voided before it took effect was never issued.
			if g.status != "pending" && g.source != "refund" && s.issued != 0 {
				r.equal(k, "amount of grant "+g.id, s.issued, g.amount)
			}
		}
		delete(byGrant, g.id)
	}
	delete(byGrant, "")
	for id := range byGrant {
		r.add(k, "grant of existing entries", "a row", "none: "+id)
	}
	r.equal(k, "sum of open grants", b.remaining(), open)
	r.equal(k, "sum of held in grants", b.held, held)
	if c.whole(k) {
		journal := int64(0)
		for _, s := range c.sums[k] {
			journal += s.held
		}
		r.equal(k, "held", journal, b.held)
	}
	// A head that was drawn to zero stays in place until the next draw reads the grants.
	if first != nil && b.headRemaining > 0 && first.id != b.headID {
		r.add(k, "head grant", first.id, b.headID)
	}
}
