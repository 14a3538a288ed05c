package rule

import (
	"math/bits"
	"time"

	"github.com/quotasvc/quotasvc/internal/kit/period"
)

// These are lengths of time. epochMonday is the time from 1970-01-01 to the first Monday, 1970-01-05. Weeks are counted
// from this Monday.
const (
	Day         = 24 * time.Hour
	week        = 7 * Day
	epochMonday = 4 * Day
)

// fixedWindow counts the tokens taken in the current window. The stored count belongs to the window that contains the
// last charge, so it is kept if the rule's calendar changes.
//
// Windows of a minute begin with the minute of the calendar in every zone. In UTC, windows of an hour, a day or a
// week have a constant length. All these windows are described by a length and a phase. Other windows need a calendar
// with a zone.
type fixedWindow struct {
	counts // a debt is owed until the window ends

	length int64           // us
	phase  int64           // µs; the start of some window
	every  period.Interval // interval of calendar windows; empty if all windows have the same length in every zone
}

func newFixedWindow(r Rate, debt int64) fixedWindow {
	w := fixedWindow{counts: counts{r.Count, debt}, length: r.Period.Microseconds()}
	switch {
	case r.Month:
		w.every = period.Month
	case r.Period == time.Hour:
		w.every = period.Hour
	case r.Period == Day:
		w.every = period.Day
	case r.Period == week:
		w.every, w.phase = period.Week, epochMonday.Microseconds()
	}
	return w
}

// even reports whether all windows in zone have the same length.
func (w fixedWindow) even(zone *time.Location) bool {
	return w.every == "" || w.every != period.Month && (zone == nil || zone == time.UTC)
}

// bounds returns the start and end of the window that contains the instant us (µs).
func (w fixedWindow) bounds(us int64, zone *time.Location) (start, end int64) {
	if !w.even(zone) {
		p, err := period.Schedule{Every: w.every, Anchor: period.Calendar, Location: zone}.Containing(time.UnixMicro(us))
		if err == nil { // always nil: times are below 2^53 µs, in the year 2255
			return p.Start.UnixMicro(), p.End.UnixMicro()
		}
	}
	start = us - floorMod(us-w.phase, w.length)
	return start, start + w.length
}

// Advance implements Limit.
func (w fixedWindow) Advance(s State, at Moment) Level {
	st := advancing(s.At, at.Now)
	st.start, st.end = w.bounds(at.Now+st.Ahead, at.Zone)
	if st.Rebased && s.At >= st.end && s.At < 2*st.end-st.start {
		// The clock was set back over the start of the next window, whose tokens stay taken until it ends.
		st.Rebased, st.Ahead = false, st.end-at.Now
		st.start, st.end = w.bounds(st.end, at.Zone)
	}
	if s.At >= st.start {
		st.Used = s.Used
		st.MustStore = s.Used > 0 && s.Unit < st.end
	}
	return st
}

// Charge implements Limit. Nothing is charged if the window of an earlier charge has ended.
func (w fixedWindow) Charge(st Level, cost, at int64) Level {
	if at == UnknownTime || at >= st.start {
		st.Used += cost
	}
	return st
}

// Refund implements Limit. It does not check the window's end. If the time of the charge is after the end, the clock
// was set back after the charge. Then the charge is counted in this window.
func (w fixedWindow) Refund(st Level, cost, at int64) Level {
	if at == UnknownTime || at >= st.start {
		st.Used = max(0, st.Used-cost)
	}
	return st
}

// Store implements Limit.
func (w fixedWindow) Store(st Level, now int64) (s State, until int64) {
	until = st.end + now - st.Now
	return State{At: now + st.Ahead, Used: st.Used, Unit: now + st.Ahead + roughly(until-now-st.Ahead)}, until
}

// roughly returns us rounded up to four significant bits, and at least 8192. The script rounds the lifetime of a key in
// the same way, because it stores this lifetime in one byte.
func roughly(us int64) int64 {
	const digits, least = 4, 8192
	bit := max(0, bits.Len64(uint64(us))-digits)
	return max(least, CeilDiv(us, 1<<bit)<<bit)
}

// Wait implements Limit.
func (w fixedWindow) Wait(st Level, cost int64) time.Duration {
	if w.fits(st, cost) {
		return 0
	}
	return Micros(st.end - st.Now)
}

// Share implements Limit.
func (w fixedWindow) Share(p Portion) Limit {
	w.counts = w.share(p)
	return w
}

// Scale implements Limit.
func (w fixedWindow) Scale(s State, from Limit) State {
	return State{At: s.At, Used: convert(s.Used, from.Capacity(), w.tokens), Unit: s.Unit}
}
