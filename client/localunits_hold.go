package client

import "time"

// localHold is a hold at the service whose units this process grants. LocalUnits.mu guards it.
type localHold struct {
	id       string
	size     int64         // units; 0 if it is not known whether the hold exists
	taken    int64         // by Take; at most size
	captured int64         // by answered captures; at most taken
	asked    int64         // captured units and the units of the running capture
	since    time.Duration // when the oldest taken unit beyond asked was taken
	renew    time.Duration // when to extend the hold
	old      time.Duration // if the hold is not extended by then, a further hold is requested
	stop     time.Duration // when takes end, so that there is time to capture before the service ends the hold
	reset    time.Duration // end of the period that pays the hold; 0 = none
	touched  bool          // there was a Take since the hold was created or extended
	ending   bool          // no more takes: the last operation is due
	changes  int           // number of operations on the hold so far, used in their keys
	op       *operation    // the operation that is running or not answered
}

// lasts sets the times at which the hold is extended and stopped. The service keeps the hold at least until end.
func (h *localHold) lasts(end, ttl time.Duration) {
	h.renew, h.old, h.stop = end-ttl/2, end-ttl/3, end-ttl/6
}

// free returns the units that can be taken.
func (h *localHold) free(now time.Duration) int64 {
	if h.ending || now >= h.stop {
		return 0
	}
	return h.size - h.taken
}

// take takes n units. It returns true if the settler has new work.
func (h *localHold) take(n int64, now time.Duration) bool {
	first := h.taken == h.asked
	if first {
		h.since = now
	}
	h.taken += n
	h.touched = true
	return first || h.taken == h.size
}

// action is an action on a hold.
type action int

// The actions. Each action except for actionWait is a request.
const (
	actionWait    action = iota
	actionCapture        // capture the taken units; the rest stays held
	actionFinish         // capture the taken units and return the rest
	actionRelease        // return all units
	actionExtend         // keep the hold for another TTL
)

// next returns the next action on the hold. For actionWait, due is the time at which to call next again.
//
// A hold that is spent or near its end is finished. When half of its TTL is over, a hold in use is extended, and a
// hold that is not in use is returned. A hold is not extended beyond the period that pays it, because its units would
// be carried into the next period.
func (h *localHold) next(now time.Duration, o *LocalUnitsOptions, closing bool) (do action, due time.Duration) {
	extendable := h.touched && (h.reset == 0 || now+o.TTL <= h.reset)
	idle := now >= h.renew && !h.touched
	switch {
	case closing || h.ending || idle || h.taken == h.size || now >= h.stop:
		if h.taken > h.captured {
			return actionFinish, 0
		}
		return actionRelease, 0
	case now >= h.renew && extendable:
		return actionExtend, 0
	}
	due = h.stop
	if now < h.renew {
		due = h.renew
	}
	if h.taken > h.captured {
		if now >= h.since+o.CaptureEvery {
			return actionCapture, 0
		}
		due = min(due, h.since+o.CaptureEvery)
	}
	return actionWait, due
}

// sizing decides how many units a hold gets.
type sizing struct {
	min, max int64

	chunk     int64         // size of the last hold
	missing   int64         // units that the largest refused Take lacked since the last hold
	remaining int64         // of the balance after the last answer
	known     bool          // remaining is known
	rate      float64       // taken units per second
	taken     int64         // at the last hold
	at        time.Duration // of the last hold
}

// share bounds one hold to 1/share of the remaining units. So the last units of a balance are spread over all
// processes that request them.
const share = 4

// low returns the number of free units below which a further hold is requested. These units last for half a second at
// the rate from which the last hold was computed.
func (s *sizing) low() int64 { return (s.chunk + 1) / 2 }

// miss records that a Take lacked n units.
func (s *sizing) miss(n int64) { s.missing = max(s.missing, n) }

// next returns the size of the next hold. Normally that is the use of one second, by the average of the last holds.
// If the last hold was spent too early, it is twice the last hold. It is at most a share of the remaining units, and
// at least the units that the largest refused Take lacked.
func (s *sizing) next(taken int64, now time.Duration) int64 {
	elapsed := max(now-s.at, time.Millisecond)
	s.rate = (s.rate + float64(taken-s.taken)/elapsed.Seconds()) / 2
	s.taken, s.at = taken, now
	want := int64(min(s.rate, float64(s.max)))
	if s.missing > 0 {
		want = max(want, min(s.chunk, s.max/2)*2)
	}
	return s.cut(min(max(want, s.min), s.max))
}

// cut limits a hold to its share of the remaining units.
func (s *sizing) cut(want int64) int64 {
	if s.known {
		want = min(want, max(s.remaining, 0)/share+1)
	}
	s.chunk = max(want, s.missing)
	return s.chunk
}

// smaller returns the size of another attempt after the service refused the last attempt because only available units
// remain. It returns 0 if another attempt makes no sense.
func (s *sizing) smaller(available int64) int64 {
	if available < 1 || available < s.missing || available >= s.chunk {
		return 0
	}
	s.known, s.remaining = true, available
	return s.cut(s.chunk)
}
