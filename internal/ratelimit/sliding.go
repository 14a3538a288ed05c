package ratelimit

import "time"

// slidingWindow estimates what was taken in the last window's time: all of the current window's tokens, and of the previous
// one's the part that the sliding window still covers, as if they had come evenly. Windows begin with the epoch.
//
// The estimate is kept in ticks of tokens, a whole number: a tick is a microsecond, or a millisecond where that would pass
// 2^53. It is exact for even traffic; for traffic that is not, a window's time may pass up to twice the limit or deny from
// half of it on.
//
// Invariants: tokens, ticks, tick >= 1; tokens*ticks < 2^53.
type slidingWindow struct {
	tokens int64
	ticks  int64 // per window
	tick   int64 // us
}

func newSlidingWindow(r Rate) slidingWindow {
	w := slidingWindow{tokens: r.Count, ticks: r.Period.Microseconds(), tick: 1}
	if !w.exact() {
		w.ticks, w.tick = r.Period.Milliseconds(), time.Millisecond.Microseconds()
	}
	return w
}

// exact reports whether the estimate stays below 2^53 up to the capacity.
func (w slidingWindow) exact() bool { return w.tokens <= maxExact/w.ticks }

func (w slidingWindow) length() int64 { return w.ticks * w.tick }

func (w slidingWindow) capacity() int64 { return w.tokens }

func (w slidingWindow) params(moment) params {
	return params{w.tokens, w.ticks, w.tick, short(w.length() / 1000)}
}

func (w slidingWindow) width() int { return 3 }

func (w slidingWindow) read(row []int64, ahead, now int64, _ params) settled {
	return w.within(settled{now: now, ahead: ahead, used: row[0], prev: row[1]})
}

// within fills in the window.
func (w slidingWindow) within(st settled) settled {
	st.start = st.now + st.ahead - (st.now+st.ahead)%w.length()
	st.end = st.start + w.length()
	return st
}

func (w slidingWindow) settle(s state, at moment) settled {
	st := w.within(settling(s.ts, at.now))
	if s.empty() {
		return st
	}
	current, previous, ts := s.used, s.prev, s.ts
	if st.rebased || s.unit != w.length() {
		// What the count was as of its time, rounded up, counts as charged then.
		if rest := s.unit - ts%s.unit; rest < s.unit && previous > 0 {
			previous = mulDivCeil(rest, previous, s.unit)
		}
		current, previous = min(current+previous, maxExact), 0
	}
	if st.rebased {
		ts = at.now
	}
	switch passed := (at.now+st.ahead)/w.length() - ts/w.length(); passed {
	case 0:
		st.used, st.prev = current, previous
	case 1:
		st.prev = current
	}
	return st
}

// level is in ticks of tokens, capped where that is far beyond the capacity.
func (w slidingWindow) level(st settled) int64 {
	covered := w.ticks - (st.now+st.ahead-st.start)/w.tick
	return mulCap(st.used, w.ticks) + mulCap(st.prev, covered)
}

func (w slidingWindow) fits(st settled, cost int64) bool {
	return w.level(st) <= (w.tokens-cost)*w.ticks
}

func (w slidingWindow) charge(st settled, cost int64) settled {
	st.used += cost
	return st
}

func (w slidingWindow) refund(st settled, cost, at int64) settled {
	switch {
	case at == unknownTime || at >= st.start:
		st.used = max(0, st.used-cost)
	case at >= st.start-w.length():
		st.prev = max(0, st.prev-cost)
	}
	return st
}

func (w slidingWindow) store(st settled, now int64) (s state, until int64) {
	until = st.end + now - st.now
	if st.used > 0 {
		until += w.length()
	}
	return state{ts: now + st.ahead, used: st.used, prev: st.prev, unit: w.length()}, until
}

func (w slidingWindow) remaining(st settled) int64 {
	return max(0, w.tokens*w.ticks-w.level(st)) / w.ticks
}

func (w slidingWindow) wait(st settled, cost int64) time.Duration {
	if w.fits(st, cost) {
		return 0
	}
	room := (w.tokens - cost) * w.ticks
	// In this window the previous one's part shrinks; in the next, this one's does. Either does so until it is 0.
	start, shrinking := st.start, st.prev
	if own := mulCap(st.used, w.ticks); own <= room {
		room -= own
	} else {
		start, shrinking = st.end, st.used
	}
	return micros(start + (w.ticks-room/shrinking)*w.tick - st.now)
}

func (w slidingWindow) delay(settled, int64) time.Duration { return 0 }

func (w slidingWindow) share(p portion) limit {
	w.tokens = p.tokens
	return w
}

func (w slidingWindow) scale(s state, from limit) state {
	s.used, s.prev = fraction(s.used, from.capacity(), w.tokens), fraction(s.prev, from.capacity(), w.tokens)
	return s
}
