package ledger

import (
	"time"

	"github.com/quotasvc/quotasvc/internal/kit/bound"
	"github.com/quotasvc/quotasvc/internal/kit/period"
)

// A change of plan that applies at once ends the open period. The use of its allowance still counts: it reduces the
// allowance of the period that the change opens. So toggling plans gives no second allowance for the same time.
//
// Plans may have different intervals. A span is the time over which such changes share one count of use. It lasts
// from the first change until the latest end that any of the periods had before it was cut short. Within a span
//
//   - a period that begins at its own boundary, because the previous period ran out there, has its whole allowance;
//   - any other period has its allowance minus the use in the same nominal period (the period before it was cut). If
//     that use is not known, the use in the whole span is subtracted instead.
//
// The use of an allowance is the number of its drawn and held units, minus its returned units. Once-only allowances
// are not part of a span: each is granted once, is not counted as use, and is not reduced.

// ending says how the open period ends.
type ending int

const (
	endsInTime  ending = iota // it ends at its own end
	endsCarried               // new terms end it, and the use of its allowance still counts
	endsReset                 // new terms end it, and the next period has a whole allowance
)

// endless reports whether the open period has no end of its own.
func (b *Book) endless() bool { return b.Terms == nil || b.Terms.Every == period.Once }

// ending returns how the open period ends. cutOpenPeriod has stored in SpanEnd the end that a cut period would have
// had.
func (b *Book) ending() ending {
	if !b.endless() && !b.SpanEnd.After(b.End) {
		return endsInTime
	}
	how := endsInTime
	if b.endless() {
		how = endsCarried
	}
	for i := range b.Timeline {
		t := &b.Timeline[i]
		if !t.now || !t.since.After(b.Start) || t.since.After(b.End) || !b.Timeline.changes(&b.BalanceRow, t) {
			continue
		}
		if t.reset {
			return endsReset
		}
		how = endsCarried
	}
	return how
}

// usedOfAllowance returns how many units of the open period's allowance were used or are held.
func (b *Book) usedOfAllowance() int64 {
	if b.endless() {
		return 0
	}
	for _, g := range b.Grants {
		if g.Source == SourceAllowance && g.EffectiveAt.Equal(b.Start) {
			return g.Amount - g.Remaining
		}
	}
	return b.openedWith() // the allowance is used up, so its grant was not read
}

// openedWith returns the allowance that the open period began with.
func (b *Book) openedWith() int64 {
	t := b.Timeline.At(b.Start)
	p, err := t.Containing(b.Start)
	if err != nil {
		return b.Allowance
	}
	return max(0, t.share(b.Allowance, b.Start, p)-b.Carried)
}

// carryUse adds `used`, the use of the closing period's allowance, to the span. It returns the number of units by which
// the next allowance is reduced. The argument `next` is the nominal period under t that contains the end of the closing
// period.
func (b *Book) carryUse(how ending, used int64, t *Terms, next period.Period) int64 {
	if how == endsReset || !b.SpanEnd.After(b.End) {
		b.SpanUsed, b.SpanEnd = 0, time.Time{}
		return 0
	}
	b.SpanUsed = bound.SaturatingAdd(b.SpanUsed, used)
	if t.once() || how == endsInTime && next.Start.Equal(b.End) {
		return 0
	}
	b.SpanEnd = period.Later(b.SpanEnd, next.End)
	was := b.Timeline.At(b.Start)
	closing, err := was.Containing(b.Start)
	switch {
	case err != nil || !t.meets(was):
		return b.SpanUsed
	case closing.Start.Equal(next.Start):
		return bound.SaturatingAdd(b.Carried, used)
	case !b.Start.After(next.Start): // all earlier use was before next
		return used
	}
	return b.SpanUsed
}
