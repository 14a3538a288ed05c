package ledger

import (
	"errors"
	"maps"
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/quotasvc/quotasvc/internal/period"
)

// memory stands in for PostgreSQL under the pure machine: it keeps rows exactly as store.go and write.go would, the head's
// remainder in the balance, and hands a batch as little as run.go would read.
type memory struct {
	balances map[key]balance
	grants   map[key]map[string]GrantRecord
	lines    map[key][]holdLine
	holds    map[holdKey]holdRow
	refunds  map[refundKey]int64
	entries  map[opKey][]line
	periods  map[key][]closedPeriod
	history  []tenantTerms // of the one tenant
	plans    map[string][]planVersion
}

const memTenant = "acme"

func newMemory() *memory {
	return &memory{
		balances: map[key]balance{}, grants: map[key]map[string]GrantRecord{}, lines: map[key][]holdLine{}, holds: map[holdKey]holdRow{},
		refunds: map[refundKey]int64{}, entries: map[opKey][]line{}, periods: map[key][]closedPeriod{}, plans: map[string][]planVersion{},
	}
}

// run decides calls as one batch at now and keeps the outcome, unless lose says that the transaction is lost.
func (s *memory) run(t *rapid.T, calls []*call, now time.Time, lose bool) {
	a := newAttempt(calls)
	a.found = s.locate(a.refs)
	for range 10_000 {
		a.plan()
		m := s.load(a, now)
		more, err := m.advanceAll()
		for _, c := range calls {
			if more || err != nil {
				break
			}
			err = m.decide(c)
		}
		if need, ok := errors.AsType[*errNeedKeys](err); ok {
			a.extra = append(a.extra, need.keys...)
			continue
		}
		if errors.Is(err, errNotLoaded) && !a.force {
			a.force = true
			continue
		}
		if err != nil {
			t.Fatalf("batch failed: %v", err)
		}
		if lose {
			return
		}
		s.store(t, m)
		if !more {
			return
		}
	}
	t.Fatal("a batch never came to an end")
}

func (s *memory) locate(r references) found {
	f := found{holds: map[holdKey][]key{}, grants: map[homeKey][]key{}, debits: map[opKey][]line{}}
	for _, h := range r.holds {
		f.holds[h] = nil
		for k, lines := range s.lines {
			if slices.ContainsFunc(lines, func(l holdLine) bool { return l.holdID == h.id }) {
				f.holds[h] = append(f.holds[h], k)
			}
		}
	}
	for _, g := range r.grants {
		f.grants[g] = nil
		for k, grants := range s.grants {
			if _, ok := grants[g.grantID]; ok {
				f.grants[g] = append(f.grants[g], k)
			}
		}
	}
	for _, d := range r.debits {
		f.debits[d] = s.entries[d]
	}
	return f
}

func (s *memory) load(a *attempt, now time.Time) *machine {
	m := newMachine()
	m.now, m.found = now, a.found
	for _, id := range a.opKeys {
		if lines, known := s.entries[id]; known {
			m.stored[id] = lines
		}
	}
	for _, k := range slices.Concat(a.refs.holds, a.refs.fresh) {
		if row, known := s.holds[k]; known {
			row.items = slices.Clone(row.items)
			m.holds[k] = &row
		}
	}
	for _, d := range a.refs.debits {
		for _, l := range s.entries[d] {
			if n, known := s.refunds[refundKey{d, l.line}]; known {
				m.refunds[refundKey{d, l.line}] = &refundSum{amount: n}
			}
		}
	}
	for _, g := range a.grantIDs() {
		_, m.taken[g] = s.grants[g.key][g.id]
	}
	named := map[key][]string{}
	for _, n := range a.found.namedGrants() {
		named[n.key] = append(named[n.key], n.id)
	}
	for _, k := range a.keys {
		row, ok := s.balances[k]
		if !ok {
			row = balance{key: k}
		}
		b := &book{balance: row, writtenAt: row.updatedAt}
		m.books[k] = b
		due := !b.nextEvent.After(now)
		// Terms are read when an event is due or an endless period may have ended; here also at random, by force.
		if due || a.force || !b.end.Before(period.Forever) {
			b.timeline = newTimeline(k, s.history, s.plans)
		}
		if b.plan != "" {
			b.terms = allowanceOf(k, s.plans, b.plan, b.planVersion)
		}
		if due || a.force || len(named[k]) > 0 || b.headRemaining < a.demand[k] {
			b.attach(s.openGrants(k, named[k]), s.openLines(k))
		}
	}
	return &m
}

func (s *memory) openGrants(k key, named []string) []*grant {
	var out []*grant
	for _, id := range slices.Sorted(maps.Keys(s.grants[k])) {
		g := s.grants[k][id]
		if g.Status == GrantActive || g.Status == GrantPending || g.Held > 0 || slices.Contains(named, id) {
			out = append(out, &grant{GrantRecord: g})
		}
	}
	return out
}

func (s *memory) openLines(k key) []*holdLine {
	var out []*holdLine
	for _, l := range s.lines[k] {
		if l.open() > 0 {
			out = append(out, &l)
		}
	}
	return out
}

// store keeps what the machine has changed, and holds it to what the schema's constraints say.
func (s *memory) store(t *rapid.T, m *machine) {
	for _, l := range m.journal.lines {
		id := opKey{l.Tenant, l.operationID}
		for _, have := range s.entries[id] {
			if have.line == l.line {
				t.Fatalf("entry %v line %d is written twice", id, l.line)
			}
		}
		s.entries[id] = append(s.entries[id], l)
	}
	for k, b := range m.books {
		if b.broken != nil {
			t.Fatalf("balance %v: %v", k, b.broken)
		}
		if !b.dirty {
			continue
		}
		if b.remaining() < 0 || b.headRemaining < 0 || b.headRemaining > b.remaining() || b.held < 0 || b.overage < 0 {
			t.Fatalf("balance %v breaks a constraint: %+v", k, b.balance)
		}
		s.balances[k] = b.balance
		if s.grants[k] == nil {
			s.grants[k] = map[string]GrantRecord{}
		}
		for _, g := range b.grants {
			_, exists := s.grants[k][g.ID]
			if g.isNew && exists {
				t.Fatalf("grant %v %s is issued twice", k, g.ID)
			}
			if g.isNew || g.dirty {
				s.grants[k][g.ID] = g.GrantRecord
			}
		}
		for _, h := range b.holds {
			at := slices.IndexFunc(s.lines[k], func(l holdLine) bool { return l.holdID == h.holdID && l.line == h.line })
			row := *h
			row.isNew, row.dirty = false, false
			switch {
			case h.isNew:
				s.lines[k] = append(s.lines[k], row)
			case h.dirty:
				s.lines[k][at] = row
			}
		}
		s.periods[k] = append(s.periods[k], b.closed...)
	}
	for k, h := range m.holds {
		if h.isNew || h.dirty {
			row := *h
			row.isNew, row.dirty = false, false
			s.holds[k] = row
		}
	}
	for k, r := range m.refunds {
		if r.dirty {
			s.refunds[k] = r.amount
		}
	}
}

// check holds the stored rows against each other and against the journal (L1 to L3, and that periods foot and meet).
func (s *memory) check(t *rapid.T) {
	byBalance := map[key][]line{}
	for _, lines := range s.entries {
		for _, l := range lines {
			byBalance[l.key] = append(byBalance[l.key], l)
		}
	}
	for k, b := range s.balances {
		open, held := int64(0), int64(0)
		for id, g := range s.grants[k] {
			if id == b.headID {
				g.Remaining = b.headRemaining
			}
			if g.Status == GrantActive {
				open += g.Remaining
			} else if g.Remaining != 0 {
				t.Fatalf("%v: %s grant %s has %d left", k, g.Status, id, g.Remaining)
			}
			if g.Remaining+g.Held > g.Amount {
				t.Fatalf("%v: grant %s holds more than it was issued with: %+v", k, id, g)
			}
			held += g.Held
		}
		if open != b.remaining() || held != b.held {
			t.Fatalf("%v: open grants hold %d and %d held, the balance says %d and %d", k, open, held, b.remaining(), b.held)
		}
		reserved := int64(0)
		for _, l := range s.lines[k] {
			reserved += l.open()
		}
		if reserved != b.held {
			t.Fatalf("%v: holds reserve %d, the balance says %d", k, reserved, b.held)
		}
		s.checkJournal(t, k, b, byBalance[k])
	}
}

func (s *memory) checkJournal(t *rapid.T, k key, b balance, lines []line) {
	slices.SortFunc(lines, func(a, b line) int { return int(a.seq - b.seq) })
	var sum balance
	closed := s.periods[k]
	at := 0
	for i, l := range lines {
		if l.seq != int64(i)+1 {
			t.Fatalf("%v: entry %d is numbered %d", k, i+1, l.seq)
		}
		if i > 0 && l.createdAt.Before(lines[i-1].createdAt) {
			t.Fatalf("%v: time runs backwards at entry %d", k, l.seq)
		}
		for at < len(closed) && !l.periodStart.Equal(closed[at].start) {
			sum = s.closePeriod(t, k, sum, closed[at])
			at++
		}
		sum.apply(l.kind, l.amount)
		if sum.remaining() != l.remainingAfter || sum.remaining() < 0 {
			t.Fatalf("%v: entry %d (%s %d) leaves %d, replayed %d", k, l.seq, l.kind, l.amount, l.remainingAfter, sum.remaining())
		}
	}
	for ; at < len(closed); at++ {
		sum = s.closePeriod(t, k, sum, closed[at])
	}
	got := balance{opening: b.opening, granted: b.granted, refunded: b.refunded, used: b.used, expired: b.expired, adjusted: b.adjusted, held: b.held, overage: b.overage, owed: b.owed, settled: b.settled}
	if got != sum {
		t.Fatalf("%v: stored %+v, replayed %+v", k, got, sum)
	}
}

func (s *memory) closePeriod(t *rapid.T, k key, sum balance, p closedPeriod) balance {
	got := balance{opening: p.opening, granted: p.granted, refunded: p.refunded, used: p.used, expired: p.expired, adjusted: p.adjusted, held: p.held, overage: p.overage}
	sum.owed, sum.settled = 0, 0 // a closed period does not keep them
	if got != sum || p.closing != sum.remaining()+sum.held {
		t.Fatalf("%v: period %s stored %+v closing %d, replayed %+v", k, p.start, got, p.closing, sum)
	}
	return balance{opening: p.closing, held: sum.held}
}
