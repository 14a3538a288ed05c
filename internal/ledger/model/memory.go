package model

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"pgregory.net/rapid"

	"github.com/quotasvc/quotasvc/internal/kit/bound"
	"github.com/quotasvc/quotasvc/internal/kit/period"
	"github.com/quotasvc/quotasvc/internal/ledger"
)

// Memory replaces PostgreSQL in tests of the decisions. It keeps the rows of one tenant as the tables do: the
// remainder of the head grant is in the balance. A batch gets no more rows than the store would read for it.
type Memory struct {
	History  []ledger.TenantTerms // terms of the tenant, oldest first
	Plans    map[string][]ledger.PlanVersion
	balances map[ledger.BalanceKey]ledger.BalanceRow
	grants   map[ledger.BalanceKey]map[string]ledger.GrantRecord // by id
	lines    map[ledger.BalanceKey][]ledger.HoldLine
	holds    map[ledger.HoldKey]ledger.HoldRow
	refunds  map[ledger.EntryKey]ledger.RefundSum // refunded so far
	entries  map[ledger.OperationID][]ledger.Entry
	periods  map[ledger.BalanceKey][]ledger.PeriodRow // closed periods, oldest first
	paid     map[paidPeriod]int64                     // units that other meters paid for
	stored   func(*ledger.Changes)                    // called with all that is stored; may be nil
}

// paidPeriod names a period of a balance.
type paidPeriod struct {
	balance ledger.BalanceKey
	start   int64
}

// overflowOf returns the units that other meters paid for in the period that starts at an instant.
func (s *Memory) overflowOf(k ledger.BalanceKey, start time.Time) int64 {
	return s.paid[paidPeriod{k, start.UnixMicro()}]
}

func newMemory() *Memory {
	return &Memory{
		Plans:    map[string][]ledger.PlanVersion{},
		balances: map[ledger.BalanceKey]ledger.BalanceRow{},
		grants:   map[ledger.BalanceKey]map[string]ledger.GrantRecord{},
		lines:    map[ledger.BalanceKey][]ledger.HoldLine{},
		holds:    map[ledger.HoldKey]ledger.HoldRow{},
		refunds:  map[ledger.EntryKey]ledger.RefundSum{},
		entries:  map[ledger.OperationID][]ledger.Entry{},
		periods:  map[ledger.BalanceKey][]ledger.PeriodRow{},
		paid:     map[paidPeriod]int64{},
	}
}

// reading lists the rows that must be read to decide calls. It grows when a decision needs more rows.
type reading struct {
	calls   []*ledger.Call
	targets ledger.Targets
	located ledger.Located
	more    []ledger.BalanceKey // balances that decisions required
	all     bool                // read grants and terms of every balance
}

func newReading(calls []*ledger.Call) *reading {
	r := &reading{calls: calls}
	for _, c := range calls {
		c.Op.Targets(&r.targets)
	}
	return r
}

// demand returns the balances to read, each with the largest amount that may be drawn from it.
func (r *reading) demand() map[ledger.BalanceKey]int64 {
	out := map[ledger.BalanceKey]int64{}
	for _, c := range r.calls {
		for _, d := range c.Op.Demand(&r.located) {
			out[d.BalanceKey] = bound.SaturatingAdd(out[d.BalanceKey], d.Most)
		}
	}
	for _, k := range r.more {
		out[k] = ledger.DemandAll
	}
	return out
}

// makeDue makes every open balance due at now, as the catalogue does when terms change at once.
func (s *Memory) makeDue(now time.Time) {
	for k, b := range s.balances {
		if b.Opened() {
			b.NextEvent = period.Earlier(b.NextEvent, now)
			s.balances[k] = b
		}
	}
}

// run decides calls as one batch at the instant `now`, and stores the changes. If lose is true, the transaction is lost
// and nothing is stored.
func (s *Memory) run(t *rapid.T, calls []*ledger.Call, now time.Time, lose bool) {
	r := newReading(calls)
	r.located = s.locate(r.targets)
	for range 10_000 {
		b := s.load(r, now)
		next := b.Decide(calls)
		if next.All && r.all {
			t.Fatal("a batch lacks grants or terms that were read")
		}
		if len(next.More) > 0 || next.All {
			r.more, r.all = append(r.more, next.Keys()...), r.all || next.All
			continue
		}
		if lose {
			return
		}
		s.store(t, b)
		if next.Done() {
			s.checkActors(t, calls)
			return
		}
	}
	t.Fatal("the batch does not end")
}

// locate returns the data that calls refer to: the balances of holds and grants, and the entries of operations.
func (s *Memory) locate(r ledger.Targets) ledger.Located {
	f := ledger.Located{
		Holds: map[ledger.HoldKey][]ledger.BalanceKey{}, Grants: map[ledger.GrantName][]ledger.BalanceKey{},
		Operations: map[ledger.OperationRef][]ledger.Entry{},
	}
	for _, h := range r.Holds {
		f.Holds[h] = nil
		for k, lines := range s.lines {
			if slices.ContainsFunc(lines, func(l ledger.HoldLine) bool { return l.HoldID == h.ID }) {
				f.Holds[h] = append(f.Holds[h], k)
			}
		}
	}
	for _, g := range r.Grants {
		f.Grants[g] = nil
		for k, grants := range s.grants {
			if _, ok := grants[g.ID]; ok {
				f.Grants[g] = append(f.Grants[g], k)
			}
		}
	}
	for _, d := range r.Operations {
		f.Operations[d] = d.Among(s.entries[d.OperationID])
	}
	return f
}

// load returns a batch with the rows that r requires.
func (s *Memory) load(r *reading, now time.Time) *ledger.Batch {
	b := ledger.NewBatch()
	b.Targets = ledger.NewTargetState()
	b.Now, b.Located = now, r.located
	first, _ := ledger.KeyMonths(now)
	for _, c := range r.calls {
		if entries := ledger.Remembered(s.entries[c.ID], first); entries != nil {
			b.Stored[c.ID] = entries
		}
	}
	refunded := r.located.RefundedHolds()
	for _, k := range slices.Concat(r.targets.Holds, r.targets.NewHolds, refunded) {
		if row, known := s.holds[k]; known {
			row.Items = slices.Clone(row.Items)
			b.Targets.Holds[k] = &row
		}
	}
	for _, d := range r.targets.Operations {
		for k, n := range s.refunds {
			if k.OperationID == d.OperationID {
				b.Targets.Refunds[k] = &n
			}
		}
	}
	for _, g := range slices.Concat(r.targets.NewGrants, r.targets.KeyGrants, r.located.Reissued(r.calls)) {
		_, b.Targets.Taken[g] = s.grants[g.BalanceKey][g.ID]
	}
	named := map[ledger.BalanceKey][]string{}
	for _, n := range r.located.NamedGrants() {
		named[n.BalanceKey] = append(named[n.BalanceKey], n.ID)
	}
	for k, lines := range s.lines {
		for _, l := range lines {
			if l.PaysFor != "" && slices.Contains(refunded, ledger.HoldKey{Tenant: l.Tenant, ID: l.HoldID}) {
				named[k] = append(named[k], l.Grant)
			}
		}
	}
	for k, most := range r.demand() {
		row, ok := s.balances[k]
		if !ok {
			row = ledger.BalanceRow{BalanceKey: k}
		}
		book := ledger.NewBook(row)
		book.Overflow = &ledger.Overflow{Period: row.Start, Units: s.overflowOf(k, row.Start)}
		b.Books[k] = book
		if book.Plan != "" {
			book.Terms = ledger.AllowanceOf(k, s.Plans, book.Plan, book.PlanVersion)
		}
		// period.Forever means that terms changed after every entry, so the book requires all rows that it may need.
		needsGrants, needsTerms := book.Lacks(now, period.Forever, most)
		if needsTerms || book.MayChange(period.Forever) || r.all {
			book.Timeline = ledger.NewTimeline(k, s.History, s.Plans)
		}
		if needsGrants || book.MayChange(period.Forever) || r.all || len(named[k]) > 0 {
			book.LoadGrants(s.openGrants(k, named[k]), s.linesOf(k, slices.Concat(r.targets.Holds, refunded)))
		}
		for u, wants := book.WantsPastUse(now); wants; u, wants = book.WantsPastUse(now) {
			book.AddPastUse(s.pastUse(k, u))
		}
	}
	return b
}

// pastUse returns the use of the allowances of k, and the overage, since an instant.
func (s *Memory) pastUse(k ledger.BalanceKey, u ledger.PastUse) ledger.PastUse {
	since := u.Since
	for _, lines := range s.entries {
		for i := range lines {
			e := &lines[i]
			if e.BalanceKey != k {
				continue
			}
			at, moves := e.EffectiveAt, 1
			switch of, from := s.refunded(e); {
			case e.Kind == ledger.EntryPayOwed && !at.Before(since):
				u.Overage -= e.Amount
			case e.Kind == ledger.EntryRefundPaid:
				if !e.CreatedAt.Before(since) {
					u.Overage += e.Amount
				}
				if !of.CreatedAt.Before(since) {
					u.Overage -= e.Amount
				}
				at = e.CreatedAt
			case of != nil && of.Kind == ledger.EntryOverage && (e.Kind == ledger.EntryRefund || strings.Contains(string(e.Detail), `"paid":true`)):
				if !of.CreatedAt.Before(since) {
					u.Overage, u.Drawn = u.Overage-e.Amount, u.Drawn-e.Amount
				}
				continue
			case of != nil:
				at, moves, e = of.CreatedAt, -1, &ledger.Entry{Kind: of.Kind, Source: s.grants[k][from].Source, Grant: from, Amount: e.Amount}
			case at.IsZero(), e.Kind == ledger.EntryCapture:
				at = e.CreatedAt
			}
			g := s.grants[k][e.Grant]
			once := !g.ExpiresAt.Before(period.Forever) || strings.HasPrefix(g.OperationID, "§once/")
			for i := range u.ApartFrom {
				once = once || e.Grant != "" && !g.EffectiveAt.Before(u.ApartFrom[i]) && g.EffectiveAt.Before(u.ApartUntil[i])
			}
			switch {
			case at.Before(since):
			case e.Kind == ledger.EntryOverage:
				u.Overage += int64(moves) * e.Amount
			case e.Source != ledger.SourceAllowance || once:
			case e.Kind == ledger.EntryDebit, e.Kind == ledger.EntryCapture, e.Kind == ledger.EntryPayOwed:
				u.Drawn += int64(moves) * e.Amount
			case e.Kind == ledger.EntryRefundPaid:
				u.Drawn -= e.Amount
			}
		}
	}
	u.Drawn, u.Overage = max(0, u.Drawn), max(0, u.Overage)
	return u
}

// refunded returns the entry that e refunds, and the grant of the refunded units. It returns nil if e is no refund.
func (s *Memory) refunded(e *ledger.Entry) (of *ledger.Entry, grant string) {
	var d struct {
		From  string `json:"from"`
		Of    string `json:"refund_of"`
		Month string `json:"refund_month"`
		Line  int32  `json:"refund_line"`
	}
	switch e.Kind {
	case ledger.EntryRefund, ledger.EntryRefundOverage, ledger.EntryRefundClosed, ledger.EntryRefundOwed, ledger.EntryRefundPaid:
	default:
		return nil, ""
	}
	if json.Unmarshal(e.Detail, &d) != nil {
		return nil, ""
	}
	lines := s.entries[ledger.OperationID{Tenant: e.Tenant, Key: d.Of}]
	for i := range lines {
		if o := &lines[i]; o.Line == d.Line && o.CreatedAt.UTC().Format("2006-01") == d.Month {
			return o, cmp.Or(d.From, e.Grant)
		}
	}
	return nil, ""
}

// read returns a batch with the book of k, its grants, hold lines and terms.
func (s *Memory) read(k ledger.BalanceKey, now time.Time) *ledger.Batch {
	return s.load(&reading{more: []ledger.BalanceKey{k}, all: true}, now)
}

// openGrants returns the open grants of k, and the grants of k whose ids are in named.
func (s *Memory) openGrants(k ledger.BalanceKey, named []string) []*ledger.OpenGrant {
	var out []*ledger.OpenGrant
	for _, id := range slices.Sorted(maps.Keys(s.grants[k])) {
		g := s.grants[k][id]
		if g.Status == ledger.GrantActive || g.Status == ledger.GrantPending || g.Held > 0 || slices.Contains(named, id) {
			out = append(out, &ledger.OpenGrant{GrantRecord: g})
		}
	}
	return out
}

// linesOf returns the open hold lines of k, and all lines of the given holds.
func (s *Memory) linesOf(k ledger.BalanceKey, holds []ledger.HoldKey) []*ledger.HoldLine {
	var out []*ledger.HoldLine
	for _, l := range s.lines[k] {
		if l.Open() > 0 || slices.Contains(holds, ledger.HoldKey{Tenant: l.Tenant, ID: l.HoldID}) {
			out = append(out, &l)
		}
	}
	return out
}

// sweep advances the balances that are due at now, as a roll does.
func (s *Memory) sweep(t *rapid.T, now time.Time) {
	for k, row := range s.balances {
		if !row.Opened() || row.NextEvent.After(now) {
			continue
		}
		b := s.read(k, now)
		if next := b.Decide(nil); next.All {
			t.Fatalf("sweep %v: grants or terms were not read", k)
		}
		s.store(t, b)
	}
}
