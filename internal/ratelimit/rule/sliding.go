package rule

import "time"

// slidingWindow estimates the number of tokens taken in the last period of one window's length. It adds all tokens of
// the current window and a part of the tokens of the previous window. This is the part that the sliding window still
// covers, if the previous window's tokens were taken evenly. Windows are aligned to 1970-01-01 UTC.
//
// The estimate is a whole number of tokens times ticks. A tick is a microsecond, or a millisecond if the product
// would exceed 2^53. The estimate is exact for even traffic. With uneven traffic, up to twice the limit may pass in a
// period of a window's length, or denials may begin at half the limit.
//
// Invariants: tokens, ticks, tick >= 1; (tokens+debt)*ticks < 2^53.
type slidingWindow struct {
	counts

	ticks int64 // per window
	tick  int64 // us
}

func newSlidingWindow(r Rate, debt int64) slidingWindow {
	w := slidingWindow{counts: counts{r.Count, debt}, ticks: r.Period.Microseconds(), tick: 1}
	if !w.exact() {
		w.ticks, w.tick = r.Period.Milliseconds(), time.Millisecond.Microseconds()
	}
	return w
}

// exact reports whether the estimate stays below 2^53 if the capacity and the debt are used up.
func (w slidingWindow) exact() bool { return w.tokens+w.debt <= maxExact/w.ticks }

func (w slidingWindow) length() int64 { return w.ticks * w.tick }

// within sets the bounds of the window that contains the time of st.
func (w slidingWindow) within(st Level) Level {
	st.start = st.Now + st.Ahead - (st.Now+st.Ahead)%w.length()
	st.end = st.start + w.length()
	return st
}

// Advance implements Limit.
func (w slidingWindow) Advance(s State, at Moment) Level {
	st := w.within(advancing(s.At, at.Now))
	if s.Empty() {
		return st
	}
	current, previous, ts := s.Used, s.Prev, s.At
	st.MustStore = s.Unit != w.length()
	if st.Rebased || s.Unit != w.length() {
		// The estimate at the state's own time, rounded up, replaces the tokens of both windows.
		if rest := s.Unit - ts%s.Unit; rest < s.Unit && previous > 0 {
			previous = mulDivCeil(rest, previous, s.Unit)
		}
		current, previous = min(current+previous, maxExact), 0
	}
	if st.Rebased {
		ts = at.Now
	}
	switch passed := (at.Now+st.Ahead)/w.length() - ts/w.length(); passed {
	case 0:
		st.Used, st.Prev = current, previous
	case 1:
		st.Prev = current
	}
	return st
}

// level returns the estimate in tokens times ticks. It is limited to a number far above the capacity.
func (w slidingWindow) level(st Level) int64 {
	covered := w.ticks - (st.Now+st.Ahead-st.start)/w.tick
	return mulCap(st.Used, w.ticks) + mulCap(st.Prev, covered)
}

func (w slidingWindow) fits(st Level, cost int64) bool {
	return w.level(st) <= (w.tokens-cost)*w.ticks
}

// Charge implements Limit.
func (w slidingWindow) Charge(st Level, cost, at int64) Level {
	switch {
	case at == UnknownTime || at >= st.start:
		st.Used += cost
	case at >= st.start-w.length():
		st.Prev += cost
	}
	return st
}

// Refund implements Limit.
func (w slidingWindow) Refund(st Level, cost, at int64) Level {
	switch {
	case at == UnknownTime || at >= st.start:
		st.Used = max(0, st.Used-cost)
	case at >= st.start-w.length():
		st.Prev = max(0, st.Prev-cost)
	}
	return st
}

// Store implements Limit.
func (w slidingWindow) Store(st Level, now int64) (s State, until int64) {
	until = st.end + now - st.Now
	if st.Used > 0 {
		until += w.length()
	}
	return State{At: now + st.Ahead, Used: st.Used, Prev: st.Prev, Unit: w.length()}, until
}

// Left implements Limit.
func (w slidingWindow) Left(st Level) int64 { return floorDiv(w.tokens*w.ticks-w.level(st), w.ticks) }

// Wait implements Limit.
func (w slidingWindow) Wait(st Level, cost int64) time.Duration {
	if w.fits(st, cost) {
		return 0
	}
	room := (w.tokens - cost) * w.ticks
	// Until the end of this window, the counted part of the previous window shrinks to 0. In the next window, the
	// counted part of this window shrinks.
	start, shrinking := st.start, st.Prev
	if own := mulCap(st.Used, w.ticks); own <= room {
		room -= own
	} else {
		start, shrinking = st.end, st.Used
	}
	return Micros(start + (w.ticks-room/shrinking)*w.tick - st.Now)
}

// Share implements Limit.
func (w slidingWindow) Share(p Portion) Limit {
	w.counts = w.share(p)
	return w
}

// Scale implements Limit.
func (w slidingWindow) Scale(s State, from Limit) State {
	s.Used, s.Prev = convert(s.Used, from.Capacity(), w.tokens), convert(s.Prev, from.Capacity(), w.tokens)
	return s
}
