package ratelimit

import (
	"time"

	"github.com/quotasvc/quotasvc/internal/period"
)

// week and epochMonday say where weeks begin: 1970-01-05 was the first Monday of the epoch.
const (
	day         = 24 * time.Hour
	week        = 7 * day
	epochMonday = 4 * day
)

// fixedWindow counts tokens from each start of a window. The count belongs to the window of its last charge, so that it is
// kept when the rule's calendar changes beneath it.
//
// Windows of a minute begin with the calendar's minute in every zone, those of an hour, a day or a week in UTC are all of one
// length too: such windows are length and phase. The others need a zone and a calendar.
type fixedWindow struct {
	tokens int64
	length int64           // us
	phase  int64           // us; a window begins there
	every  period.Interval // of a calendar; "" if the windows are of one length whatever the zone
}

func newFixedWindow(r Rate) fixedWindow {
	w := fixedWindow{tokens: r.Count, length: r.Period.Microseconds()}
	switch {
	case r.Month:
		w.every = period.Month
	case r.Period == time.Hour:
		w.every = period.Hour
	case r.Period == day:
		w.every = period.Day
	case r.Period == week:
		w.every, w.phase = period.Week, epochMonday.Microseconds()
	}
	return w
}

// even reports whether the windows in zone are all of one length.
func (w fixedWindow) even(zone *time.Location) bool {
	return w.every == "" || w.every != period.Month && (zone == nil || zone == time.UTC)
}

// bounds is the window that contains us.
func (w fixedWindow) bounds(us int64, zone *time.Location) (start, end int64) {
	if !w.even(zone) {
		p, err := period.Schedule{Every: w.every, Anchor: period.Calendar, Location: zone}.Containing(time.UnixMicro(us))
		if err == nil { // it always is: times are below 2^53 us, in the year 2255
			return p.Start.UnixMicro(), p.End.UnixMicro()
		}
	}
	start = us - floorMod(us-w.phase, w.length)
	return start, start + w.length
}

func (w fixedWindow) capacity() int64 { return w.tokens }

// windowSlack is how much earlier than expected Redis' clock may be: the window of that time and the next one are sent, so
// that either is there however long the way takes.
const windowSlack = time.Second

func (w fixedWindow) params(at moment) params {
	if w.even(at.zone) {
		return params{w.tokens, w.length, w.phase, 0}
	}
	start, end := w.bounds(at.now-windowSlack.Microseconds(), at.zone)
	_, next := w.bounds(end, at.zone)
	return params{w.tokens, start, end, next}
}

func (w fixedWindow) width() int { return 2 }

func (w fixedWindow) read(row []int64, ahead, now int64, sent params) settled {
	st := settled{now: now, used: row[0], ahead: ahead, start: sent[1], end: sent[2]}
	switch {
	case sent[3] == 0:
		st.start, st.end = w.bounds(now+ahead, nil)
	case now+ahead >= st.end:
		st.start, st.end = st.end, sent[3]
	}
	return st
}

func (w fixedWindow) settle(s state, at moment) settled {
	st := settling(s.ts, at.now)
	st.start, st.end = w.bounds(at.now+st.ahead, at.zone)
	if s.ts >= st.start {
		st.used = s.used
	}
	return st
}

func (w fixedWindow) fits(st settled, cost int64) bool { return st.used <= w.tokens-cost }

func (w fixedWindow) charge(st settled, cost int64) settled {
	st.used += cost
	return st
}

// refund does not ask for the window's end: a charge behind it was made before the clock was set back, and is counted here.
func (w fixedWindow) refund(st settled, cost, at int64) settled {
	if at == unknownTime || at >= st.start {
		st.used = max(0, st.used-cost)
	}
	return st
}

func (w fixedWindow) store(st settled, now int64) (s state, until int64) {
	return state{ts: now + st.ahead, used: st.used}, st.end + now - st.now
}

func (w fixedWindow) remaining(st settled) int64 { return max(0, w.tokens-st.used) }

func (w fixedWindow) wait(st settled, cost int64) time.Duration {
	if w.fits(st, cost) {
		return 0
	}
	return micros(st.end - st.now)
}

func (w fixedWindow) delay(settled, int64) time.Duration { return 0 }

func (w fixedWindow) share(p portion) limit {
	w.tokens = p.tokens
	return w
}

func (w fixedWindow) scale(s state, from limit) state {
	return state{ts: s.ts, used: fraction(s.used, from.capacity(), w.tokens)}
}

// floorMod is a mod b, never negative.
func floorMod(a, b int64) int64 {
	m := a % b
	if m < 0 {
		m += b
	}
	return m
}
