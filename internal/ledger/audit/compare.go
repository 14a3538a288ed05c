package audit

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// compare compares the stored rows of balance k with its entries. clean reports whether they agree.
func (s *stored) compare(k Key, j *journal, r *Report) (clean bool) {
	before := r.Count
	r.Balances++
	r.Periods += int64(len(s.periods[k]))
	r.Grants += int64(len(s.grants[k]))
	for _, f := range j.faults {
		r.add(k, f.what, f.want, f.got)
	}
	b := s.balances[k]
	if b == nil {
		r.add(k, "balance of existing entries", "a row", "none")
		return false
	}
	b.compareNewest(k, j, r)
	b.compareChain(k, j, r)
	s.comparePeriods(k, j, r)
	s.compareGrants(k, j, r)
	s.comparePaid(k, j, r)
	open := j.periods[b.start.UnixMicro()]
	s.compareEvents(k, open != nil && open.busy, r)
	r.totals[k.Meter] = r.totals[k.Meter].plus(j, b)
	return r.Count == before
}

// compareNewest compares the balance with its newest entry.
func (b *balance) compareNewest(k Key, j *journal, r *Report) {
	r.equal(k, "newest entry", j.last, b.seq)
	if j.last == 0 {
		return
	}
	r.equal(k, "remaining", j.remaining, b.remaining())
	r.equal(k, "held", j.held, b.held)
	r.equal(k, "entry that forgave overage", j.forgivenSeq, b.forgivenSeq)
	if at := b.updatedAt.UnixMicro(); at != j.at {
		r.add(k, "instant of the newest entry", instant(j.at), instant(at))
	}
}

// compareChain compares the stored head with the head computed from the entries.
func (b *balance) compareChain(k Key, j *journal, r *Report) {
	want, ok := decodeChain(b.chain)
	switch {
	case !ok:
		r.add(k, "hash chain", "48 bytes that name entries", "something else")
	case want.Last > b.seq || want.Last > j.last:
		r.add(k, "hash chain", "at most up to entry "+text64(j.last), "up to entry "+text64(want.Last))
	case want.From > 0 && (want.Head != j.chain.Head || want.From != j.chain.From || want.Last != j.chain.Last):
		r.add(k, "hash chain", fmt.Sprintf("%x", j.chain.Head[:8]), fmt.Sprintf("%x", want.Head[:8])+": an entry from "+text64(want.From)+" to "+text64(want.Last)+" was changed, removed or put in")
	}
}

// comparePeriods checks that the sums of each period equal the sums of its entries and give its closing balance. It
// also checks that each period opens with the closing balance of the period before.
func (s *stored) comparePeriods(k Key, j *journal, r *Report) {
	b := s.balances[k]
	list := s.listed(k, j)
	seen := make(map[int64]bool, len(list))
	for i, p := range list {
		at := "period " + p.start.UTC().Format(time.RFC3339) + " "
		r.equal(k, at+"closing", p.opening+p.granted+p.refunded-p.used-p.expired+p.adjusted, p.closing)
		if i == 0 && j.resumed == nil {
			r.equal(k, at+"opening", 0, p.opening)
		}
		if i > 0 {
			r.equal(k, at+"opening", list[i-1].closing, p.opening)
			if !p.start.Equal(list[i-1].end) {
				r.add(k, at+"start", list[i-1].end.UTC(), p.start.UTC())
			}
		}
		sums := j.periods[p.start.UnixMicro()]
		if sums == nil {
			sums = &periodSums{}
		}
		seen[p.start.UnixMicro()] = true
		p.compareSums(k, at, sums, r)
		if i < len(list)-1 || b.knows() {
			p.compareAmended(k, at, sums, r)
		}
		p.compareRun(k, at, sums, j, r)
		if i < len(list)-1 {
			s.compareEnd(k, at, j, list, i, r)
		} else {
			r.equal(k, "owed", sums.owed, b.owed)
			r.equal(k, "settled", sums.paid, b.paid)
		}
	}
	for start := range j.periods {
		if !seen[start] && (j.resumed == nil || !j.resumed.Archived || j.periods[start].lastSeq > j.resumed.Seq) {
			r.add(k, "entries in a period that does not exist", "none", time.UnixMicro(start).UTC())
		}
	}
}

// compareSums compares a period's columns with the sums of its entries.
func (p *period) compareSums(k Key, at string, sums *periodSums, r *Report) {
	r.equal(k, at+"granted", sums.granted, p.granted)
	r.equal(k, at+"used", sums.used, p.used)
	r.equal(k, at+"expired", sums.expired, p.expired)
	r.equal(k, at+"refunded", sums.refunded, p.refunded)
	r.equal(k, at+"adjusted with amended", sums.adjusted+sums.amended, p.adjusted)
	r.equal(k, at+"overage", sums.overage, p.overage)
}

// compareAmended compares the part of the adjustments that changes of terms made. A closed period may have 0, because
// an earlier version may have closed it. Such a version enters changes of terms with the adjustments alone.
func (p *period) compareAmended(k Key, at string, sums *periodSums, r *Report) {
	if p.closedAt.IsZero() || p.amended != 0 {
		r.equal(k, at+"amended", sums.amended, p.amended)
	}
}

// compareRun compares the opening of a run of idle periods: the overage that was owed, and the rollover into the first
// period. An ordinary period has neither value.
func (p *period) compareRun(k Key, at string, sums *periodSums, j *journal, r *Report) {
	owing, rollover, rolledOver := int64(0), int64(0), int64(0)
	if p.idle > 0 {
		owing = sums.owing
		switch g := j.grants[sums.rollover]; {
		case g != nil:
			rollover, rolledOver = g.Issued, g.Issued
			if g.ToppedIn == p.start.UnixMicro() {
				rolledOver -= g.Topped
			}
		case j.resumed != nil && p.start.UnixMicro() == j.resumed.State.Open: // the grant ended before the checkpoint
			rollover, rolledOver = p.rollover, p.rolledOver
		}
	}
	r.equal(k, at+"owing at the start of the idle periods", owing, p.owing)
	r.equal(k, at+"rollover into the idle periods", rollover, p.rollover)
	r.equal(k, at+"rolled over into the idle periods", rolledOver, p.rolledOver)
}

// compareEnd compares the end of the closed period list[i] with the entries: newest entry, held units and overage.
func (s *stored) compareEnd(k Key, at string, j *journal, list []period, i int, r *Report) {
	p := list[i]
	sums, next := j.periods[p.start.UnixMicro()], j.periods[list[i+1].start.UnixMicro()]
	overage, forgiven, owing := int64(0), int64(0), int64(0)
	if sums != nil {
		overage, forgiven = sums.overage, sums.forgiven
		r.equal(k, at+"newest entry", sums.lastSeq, p.lastSeq)
		r.equal(k, at+"held", sums.held, p.held)
	} else if i > 0 {
		r.equal(k, at+"newest entry", list[i-1].lastSeq, p.lastSeq)
		r.equal(k, at+"held", list[i-1].held, p.held)
	}
	if next != nil {
		owing = next.owing
	}
	r.equal(k, at+"overage at its end", overage, forgiven+owing)
	p.compareClosed(k, at, j, list[i+1:], r)
}

// compareClosed compares the instant at which a period was closed with the first entry after it. If the next period
// opened with an entry, the transaction that closed this period wrote that entry.
func (p *period) compareClosed(k Key, at string, j *journal, after []period, r *Report) {
	what, got := at+"time at which it was closed", p.closedAt.UTC().Format(time.RFC3339Nano)
	if p.closedAt.Before(p.end) {
		r.add(k, what, "not before "+p.end.UTC().Format(time.RFC3339Nano), got)
	}
	for i := range after {
		next := j.periods[after[i].start.UnixMicro()]
		if next == nil {
			continue
		}
		latest := p.end
		if first := time.UnixMicro(next.firstAt); first.After(latest) {
			latest = first
		}
		switch {
		case next.firstAt == 0:
		case p.closedAt.After(latest), i == 0 && next.begun && p.closedAt.Before(latest):
			r.add(k, what, latest.UTC().Format(time.RFC3339Nano), got)
		}
		return
	}
}

// compareGrants compares every grant with the entries about it. It also checks that open grants sum to remaining, and
// that the head is the first grant in burn order.
func (s *stored) compareGrants(k Key, j *journal, r *Report) {
	b := s.balances[k]
	open, held := int64(0), int64(0)
	var first *grant
	rows := make(map[string]bool, len(s.grants[k]))
	for i := range s.grants[k] {
		g := &s.grants[k][i]
		rows[g.id] = true
		if g.id == b.headID {
			g.remaining = b.headRemaining // the stored remainder of the head grant is outdated
			if g.source != b.headSource {
				r.add(k, "source of the head grant", g.source, b.headSource)
			}
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
		r.equal(k, "held of grant "+g.id, s.held[grantKey{k, g.id}], g.held)
		g.compare(k, j, b, r)
	}
	for _, id := range sorted(j.grants) {
		if !rows[id] && (j.resumed == nil || !j.resumed.Archived || j.grants[id].Left != 0) {
			r.add(k, "grant of existing entries", "a row", "none: "+id)
		}
	}
	r.equal(k, "sum of open grants", b.remaining(), open)
	r.equal(k, "sum of held in grants", b.held, held)
	// A head that was drawn down to zero stays the head until the next draw reads the grants.
	if first != nil && b.headRemaining > 0 && first.id != b.headID {
		r.add(k, "head grant", first.id, b.headID)
	}
}

// compare compares a grant with the entry that created it, and its remainder with the other entries.
func (g *grant) compare(k Key, j *journal, b *balance, r *Report) {
	of := " of grant " + g.id
	sums := j.grants[g.id]
	if sums == nil {
		if j.resumed == nil || g.createdAt.UnixMicro() > j.resumed.At {
			r.add(k, "entry that made grant "+g.id, "in the journal", "none")
		}
		return
	}
	if j.resumed != nil && j.resumed.State.Grants[g.id] == nil && g.createdAt.UnixMicro() <= j.resumed.At {
		return // the grant ended before the checkpoint; a later entry has named it
	}
	r.equal(k, "remainder"+of, sums.Left, g.remaining)
	amount := sums.Issued
	if amount == 0 {
		amount = max(sums.Scheduled, sums.Returned)
	}
	r.equal(k, "amount"+of, amount, g.amount)
	if sums.Scheduled > 0 && sums.Issued > 0 {
		r.equal(k, "amount in effect"+of, sums.Scheduled, sums.Issued)
	}
	if g.source != sums.Source {
		r.add(k, "source"+of, sums.Source, g.source)
	}
	switch sums.Kind {
	case "grant", "schedule", "rollover_in", "adjust_up", "amend_up":
		// If a rollover follows a run of idle periods, its entry has the operation id of the run, but its row has the
		// operation id of a rollover. In older versions, a grant with only a minimum has the operation id of a
		// rollover.
		minimum, isMinimum := strings.CutPrefix(sums.Operation, "§rollover-min/")
		if g.operation != sums.Operation && !strings.HasPrefix(sums.Operation, "§idle/") && (!isMinimum || g.operation != "§rollover/"+minimum) {
			r.add(k, "operation"+of, sums.Operation, g.operation)
		}
	}
	if sums.Facts != nil {
		g.compareFacts(k, of, sums.Facts, r)
	}
	if sums.Begins != 0 && g.effectiveAt.UnixMicro() != sums.Begins {
		r.add(k, "beginning"+of, instant(sums.Begins), g.effectiveAt.UTC().Format(time.RFC3339Nano))
	}
	if g.source == "allowance" || g.source == "rollover" {
		r.equal(k, "priority"+of, priorityAllowance, int64(g.priority))
	}
	if sums.At != 0 && g.createdAt.UnixMicro() != sums.At {
		r.add(k, "time at which grant "+g.id+" was issued", instant(sums.At), g.createdAt.UTC().Format(time.RFC3339Nano))
	}
	if want := g.statuses(b, sums, j.resumed != nil); !slices.Contains(want, g.status) {
		r.add(k, "status"+of, strings.Join(want, " or "), g.status)
	}
}

// statuses returns the statuses that a grant may have. A grant that was used up may have ended either as exhausted or
// as expired: the ledger reads it again only with its balance's next event.
func (g *grant) statuses(b *balance, sums *grantSums, resumed bool) []string {
	switch {
	case sums.Voided:
		return []string{"voided"}
	case sums.Scheduled > 0 && sums.Issued == 0:
		return []string{"pending"}
	case resumed && g.status == "voided" && sums.Left == 0: // a checkpoint of an earlier version does not say it
		return []string{"voided"}
	case g.expiresAt.Before(b.nextEvent):
		return []string{"exhausted", "expired"}
	case !g.expiresAt.After(b.updatedAt), (g.source == "allowance" || g.source == "rollover") && g.effectiveAt.Before(b.start):
		return []string{"active", "exhausted", "expired"}
	case g.source == "allowance" && g.effectiveAt.Before(b.allowanceAt): // a reset may have ended it
		return []string{"active", "exhausted", "expired"}
	case sums.Left > 0 || g.held > 0:
		return []string{"active"}
	}
	return []string{"active", "exhausted"}
}

// compareFacts compares a grant with the detail of the entry that created it.
func (g *grant) compareFacts(k Key, of string, f *grantFacts, r *Report) {
	r.equal(k, "priority"+of, int64(*f.Priority), int64(g.priority))
	if !g.effectiveAt.Equal(f.EffectiveAt) {
		r.add(k, "beginning"+of, f.EffectiveAt.UTC(), g.effectiveAt.UTC())
	}
	switch {
	case f.ExpiresAt == nil && g.expiresAt.Before(forever):
		r.add(k, "expiry"+of, "never", g.expiresAt.UTC())
	case f.ExpiresAt != nil && !g.expiresAt.Equal(*f.ExpiresAt):
		r.add(k, "expiry"+of, f.ExpiresAt.UTC(), g.expiresAt.UTC())
	}
	if g.costBasis != f.CostBasis {
		r.add(k, "cost basis"+of, f.CostBasis, g.costBasis)
	}
	if g.reason != f.Reason {
		r.add(k, "reason"+of, f.Reason, g.reason)
	}
}

// forever is the expiry of grants that never expire.
var forever = time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)

// compareEvents checks that nothing is due before the balance's next event, and that a roll comes when it has something
// to write. An instant that is too early does no harm: nothing is due then. busy reports that the open period was used,
// so a roll writes its end.
func (s *stored) compareEvents(k Key, busy bool, r *Report) {
	b := s.balances[k]
	if !b.opened() {
		return
	}
	first, roll := b.end, forever
	if busy {
		roll = b.end
	}
	for i := range s.grants[k] {
		switch g := &s.grants[k][i]; g.status {
		case "active":
			first = earlier(first, g.expiresAt)
			if g.source != "allowance" && g.source != "rollover" {
				roll = earlier(roll, g.expiresAt)
			}
		case "pending":
			first, roll = earlier(first, g.effectiveAt), earlier(roll, g.effectiveAt)
		}
	}
	if at, found := s.holdEnds[k]; found {
		first, roll = earlier(first, at), earlier(roll, at)
	}
	if b.nextEvent.After(first) {
		r.add(k, "next event", "at most "+first.UTC().Format(time.RFC3339Nano), b.nextEvent.UTC().Format(time.RFC3339Nano))
	}
	if roll.Before(forever) && b.rollAt.After(roll) {
		r.add(k, "next roll", "at most "+roll.UTC().Format(time.RFC3339Nano), b.rollAt.UTC().Format(time.RFC3339Nano))
	}
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}
