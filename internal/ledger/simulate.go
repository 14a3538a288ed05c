package ledger

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/kit/period"
	"github.com/quotasvc/quotasvc/internal/kit/price"
)

// A refusal says when the same request would succeed if nothing else happens. The answer comes from the decision
// itself: copies of the balances are advanced to each instant at which units may come, and the request is decided on
// them again. So every rule of a decision holds for the answer as well: caps of subjects, overflow, overage, and terms
// that wait for the end of a period.

const (
	// trialsMax bounds the instants at which a refused request is decided again. Only an instant at which enough units
	// may have come is tried, so one or two are usual.
	trialsMax = 1000

	// farAhead is long enough for a rollover to reach its maximum and for old overage to be paid. A request that is
	// refused then is refused for ever.
	farAhead = 20 * 366 * 24 * time.Hour
)

// shortage is a lack, and what can end it.
type shortage struct {
	Lack

	item     int
	units    int64 // units of the item that could be charged now
	renews   bool
	from     []BalanceKey // balances that can bring the units: of the item or its subject, and of its overflow meter
	overflow price.Ratio  // price of the units that the last of these balances brings
	position Position
	wait     wait
}

// wait says when something succeeds.
type wait struct {
	at    time.Time // zero: never, or not soon
	never bool
}

// compare orders waits by length.
func (w wait) compare(v wait) int {
	rank := func(w wait) int {
		switch {
		case w.never:
			return 2
		case w.at.IsZero():
			return 1
		}
		return 0
	}
	return cmp.Or(cmp.Compare(rank(w), rank(v)), w.at.Compare(v.at))
}

// future is a refused operation with copies of its balances, which advance in time.
type future struct {
	now   *Batch
	op    Operation
	only  int // index of the only item that is decided; every: all items
	books map[BalanceKey]*Book
	at    time.Time
}

// every as the value of future.only stands for all items.
const every = -1

// simulate completes the denial of an operation: what it lacks, what limits it, and when it would succeed.
func (b *Batch) simulate(op Operation) (*errcode.Error, error) {
	f, err := b.futureOf(op, every)
	if err != nil {
		return nil, err
	}
	lacks, refused, err := f.try()
	switch {
	case err != nil || refused != nil:
		return refused, err
	case len(lacks) == 0:
		return nil, errNotLoaded // it was refused, so the batch has not read all that matters
	}
	end := f.horizon(lacks)
	succeeds, err := f.wait(lacks, end, func(*shortage) bool { return true })
	for i := range lacks {
		if err != nil {
			return nil, err
		}
		if lacks[i].wait = succeeds; len(lacks) > 1 {
			lacks[i].wait, err = b.waitAlone(op, &lacks[i], end)
		}
	}
	return denial(lacks, succeeds, f.now.Now), err
}

// waitAlone returns how long the balance of s lacks units for its item if the operation has no other item.
func (b *Batch) waitAlone(op Operation, s *shortage, end time.Time) (wait, error) {
	f, err := b.futureOf(op, s.item)
	if err != nil {
		return wait{}, err
	}
	same := func(o *shortage) bool { return o.from[0] == s.from[0] }
	lacks, done, err := f.tryAt(f.at, same)
	if err != nil || done {
		return wait{at: f.at}, err
	}
	return f.wait(lacks, end, same)
}

// futureOf returns the present of an operation, from which its future begins.
func (b *Batch) futureOf(op Operation, only int) (*future, error) {
	f := &future{now: b, op: op, only: only, books: map[BalanceKey]*Book{}, at: b.Now}
	needs := map[BalanceKey]bool{}
	for _, d := range op.Demand(&b.Located) {
		needs[d.BalanceKey] = true
	}
	var named Targets
	op.Targets(&named)
	for _, h := range named.Holds { // the same batch may have made the hold
		for _, l := range b.heldLines(h) {
			needs[l.BalanceKey] = true
		}
	}
	for k := range needs {
		if book := b.Books[k]; book != nil {
			f.at = period.Later(f.at, book.UpdatedAt)
		}
	}
	for k := range needs {
		if err := f.add(k); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// add copies a balance of the batch. If the batch has not read the balance as a whole, add requests it.
func (f *future) add(k BalanceKey) error {
	book := f.now.Books[k]
	if book == nil {
		return f.now.require(k)
	}
	if !book.loaded || len(book.Timeline) == 0 {
		return &moreBalances{keys: []BalanceKey{k}}
	}
	book = book.clone()
	book.Closed, book.Unwritten = nil, nil
	f.books[k] = book
	return book.skipTo(f.at)
}

// skipTo advances the book like advance, but ends the holds between two other events together. So its run time does
// not grow with the square of the number of holds. It keeps no entries.
func (b *Book) skipTo(until time.Time) error {
	if b.Broken != nil {
		return b.Broken
	}
	b.knowOnce()
	for b.due(until) {
		next := b.End
		for _, g := range b.Grants {
			switch g.Status {
			case GrantActive:
				next = period.Earlier(next, g.ExpiresAt)
			case GrantPending:
				next = period.Earlier(next, g.EffectiveAt)
			case GrantExhausted, GrantExpired, GrantVoided:
			}
		}
		next = period.Earlier(next, until)
		t, at := b.nextChange()
		if t != nil && at.Before(next) {
			next = at // the holds that end before the change end first
		}
		var err error
		if t != nil && !at.After(next) && b.NextEvent.After(next) {
			err = b.change(t, at, until, nil)
		} else {
			err = b.step(next, until, nil)
		}
		if err != nil {
			return err
		}
		b.Closed, b.ended = nil, nil
	}
	return nil
}

// errNoFuture means that a period to come cannot be computed.
var errNoFuture = errors.New("ledger: a period to come cannot be computed")

// advance moves all balances to the instant `at`.
func (f *future) advance(at time.Time) error {
	f.at = at
	for _, book := range f.books {
		if err := book.skipTo(at); err != nil {
			return errors.Join(errNoFuture, err)
		}
	}
	return nil
}

// try decides the operation on copies of the balances as they are at f.at. It returns what the operation lacks. If the
// operation is refused for another reason, it returns that refusal.
func (f *future) try() ([]shortage, *errcode.Error, error) {
	for {
		trial := &Batch{
			Now: f.at, Books: make(map[BalanceKey]*Book, len(f.books)), Absent: f.now.Absent,
			Stored: map[OperationID][]Entry{}, Located: f.now.Located,
			Targets: f.now.Targets.of(f.op), trial: true, only: f.only,
		}
		for k, book := range f.books {
			trial.Books[k] = book.clone()
		}
		c := &Call{Op: f.op, Kind: f.op.Kind(), ID: f.op.ID()}
		err := f.op.decide(trial, c)
		if more, ok := errors.AsType[*moreBalances](err); ok {
			for _, k := range more.keys {
				if err := f.add(k); err != nil {
					return nil, nil, err
				}
			}
			continue
		}
		if err != nil {
			return nil, nil, err
		}
		refused, _ := errors.AsType[*errcode.Error](c.Err)
		if refused != nil && DenialOf(refused) == nil {
			return nil, refused, nil
		}
		return trial.lacks, nil, nil
	}
}

// of returns the state that op needs, with copies of the holds that it changes. op must not be a refund.
func (t *TargetState) of(op Operation) TargetState {
	out := TargetState{Taken: t.Taken, Holds: map[HoldKey]*HoldRow{}, Refunds: t.Refunds}
	var named Targets
	op.Targets(&named)
	for _, k := range named.Holds {
		if row := t.Holds[k]; row != nil {
			copied := *row
			copied.Items = slices.Clone(row.Items)
			out.Holds[k] = &copied
		}
	}
	return out
}

// wait returns how long the operation lacks some of the units that `counts` selects. lacks has what it lacks at f.at.
// The wait has no instant after `end`, and none if a period before cannot be computed.
func (f *future) wait(lacks []shortage, end time.Time, counts func(*shortage) bool) (wait, error) {
	w, err := f.advanceUntil(lacks, end, counts)
	if errors.Is(err, errNoFuture) {
		return wait{}, nil
	}
	return w, err
}

// advanceUntil advances the future until the operation lacks none of these units: see wait.
func (f *future) advanceUntil(lacks []shortage, end time.Time, counts func(*shortage) bool) (wait, error) {
	for range trialsMax {
		next := f.at
		for i := range lacks {
			next = period.Later(next, f.enough(&lacks[i]))
		}
		switch {
		case !next.Before(period.Forever):
			return wait{never: true}, nil
		case next.After(end):
			return f.waitLong(counts)
		}
		left, done, err := f.tryAt(next, counts)
		if err != nil || done {
			return wait{at: next}, err
		}
		lacks = left
	}
	return f.waitLong(counts)
}

// tryAt tries the operation at a later instant. It reports whether the operation lacks none of the units that counts
// selects. Otherwise it returns the units that the operation lacks.
func (f *future) tryAt(at time.Time, counts func(*shortage) bool) ([]shortage, bool, error) {
	if err := f.advance(at); err != nil {
		return nil, false, err
	}
	lacks, refused, err := f.try()
	lacks = slices.DeleteFunc(lacks, func(s shortage) bool { return !counts(&s) })
	return lacks, refused == nil && len(lacks) == 0, err
}

// waitLong reports whether the operation succeeds in a distant future, in which only periods begin and end.
func (f *future) waitLong(counts func(*shortage) bool) (wait, error) {
	last := period.Latest.Add(-time.Microsecond)
	_, done, err := f.tryAt(period.Earlier(f.at.Add(farAhead), last), counts)
	return wait{never: !done}, err
}

// horizon returns the instant up to which a refusal names when the operation succeeds: the latest end of a period that
// brings units. If one of the balances gets no units by the end of a period, every known event counts as well.
func (f *future) horizon(lacks []shortage) time.Time {
	end, facts := time.Time{}, false
	for i := range lacks {
		end, facts = period.Later(end, lacks[i].ResetAt), facts || !lacks[i].renews
	}
	if !facts {
		return end
	}
	for _, book := range f.books {
		if book.End.Before(period.Forever) {
			end = period.Later(end, book.End)
		}
		for _, g := range book.gains(nil, func(n int64) int64 { return n }) {
			end = period.Later(end, g.at)
		}
		end = period.Later(end, book.Timeline[len(book.Timeline)-1].since)
	}
	return end
}

// enough returns the first instant at which enough units may have come to end a shortage, if none is lost meanwhile.
// It returns period.Forever if that never happens. Items may share an overflow meter. So if there are several items,
// units that another item gets may end the shortage as well.
func (f *future) enough(s *shortage) time.Time {
	var gains []gain
	for k, book := range f.books {
		gains = append(gains, gain{book.End, MaxAmount}) // also the terms may change then
		if t, at := book.nextChange(); t != nil {
			gains = append(gains, gain{at, MaxAmount})
		}
		switch slices.Index(s.from, k) {
		case 0:
			gains = book.gains(gains, func(n int64) int64 { return n })
		case 1:
			gains = book.gains(gains, func(n int64) int64 { return s.overflow.MaxUnits(n) + 1 })
		default:
			if f.only == every && itemsOf(f.op) != 1 {
				gains = book.gains(gains, func(int64) int64 { return MaxAmount })
			}
		}
	}
	slices.SortFunc(gains, func(a, b gain) int { return a.at.Compare(b.at) })
	missing := s.Required - s.Available
	for _, g := range gains {
		if !g.at.After(f.at) {
			continue
		}
		missing -= min(missing, g.units)
		if missing == 0 {
			return g.at
		}
	}
	return period.Forever
}

// itemsOf returns the number of items of an operation; 0: not known.
func itemsOf(op Operation) int {
	switch o := op.(type) {
	case *Debit:
		return len(o.Items)
	case *Hold:
		return len(o.Items)
	case *HoldChange:
		return len(o.Items)
	}
	return 0
}

// gain is an instant at which a balance may get units.
type gain struct {
	at    time.Time
	units int64
}

// gains appends the known instants at which the open period may get units. The function units converts amounts.
func (b *Book) gains(gains []gain, units func(int64) int64) []gain {
	for _, g := range b.Grants {
		if g.Status == GrantPending {
			gains = append(gains, gain{g.EffectiveAt, units(g.Amount)})
		}
	}
	for _, h := range b.Holds {
		if h.Free() > 0 {
			gains = append(gains, gain{h.ExpiresAt, units(h.Free())})
		}
	}
	return gains
}

// denial returns the denial of an operation that lacks these units and would succeed after the given wait. The
// shortage with the longest wait limits the operation. Of equal waits, a subject's comes before the tenant's.
func denial(lacks []shortage, succeeds wait, now time.Time) *errcode.Error {
	limiting := slices.MaxFunc(lacks, func(a, b shortage) int {
		return cmp.Or(a.wait.compare(b.wait), cmp.Compare(a.Subject, b.Subject), -cmp.Compare(a.Meter, b.Meter))
	})
	d := &Denial{
		Item: limiting.item, Required: limiting.Required, Available: limiting.units,
		Remaining: limiting.position.Remaining,
		Limit:     limiting.position.Limit, WouldSucceedAt: succeeds.at, AsOf: now,
		Limiting: Limiting{Kind: LimitedByCredit, Meter: limiting.Meter, Level: LevelTenant},
	}
	if limiting.Subject != "" {
		d.Limiting.Subject, d.Limiting.Level = limiting.Subject, LevelSubject
	}
	for i := range lacks {
		d.Lacking = append(d.Lacking, lacks[i].Lack)
	}
	if succeeds.never {
		return d.refusal(errcode.CreditsExhausted, now)
	}
	if limiting.renews {
		d.Limiting.Kind, d.ResetAt = LimitedByAllowance, limiting.ResetAt
	}
	return d.refusal(errcode.QuotaExceeded, now)
}
