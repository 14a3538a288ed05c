package client

import "time"

// localHold is a hold at the service, from which this process grants units. LocalUnits.mu guards it.
type localHold struct {
	id       string
	size     int64         // held units; 0 if it is not known whether the hold exists
	taken    int64         // units granted by Take; at most size
	captured int64         // units captured by answered captures; at most taken
	asked    int64         // captured, plus the units of the capture that is not answered yet
	since    time.Duration // time of the oldest Take whose units are not counted in asked
	renew    time.Duration // when the hold must be extended
	old      time.Duration // from then on, more units are requested as if this hold had none
	stop     time.Duration // from then on no units are granted, so that there is time to capture
	reset    time.Duration // end of the period that pays for the hold; 0: no end
	touched  bool          // units were taken since the hold was created or extended
	ending   bool          // no more units are granted, and the hold must be ended
	changes  int           // number of operations on the hold so far; a part of their keys
	op       *operation    // the operation that is not answered yet; nil: none
}

// lasts sets the times renew, old and stop of a hold. The service keeps the hold at least until the time `end`.
func (h *localHold) lasts(end, ttl time.Duration) {
	h.renew, h.old, h.stop = end-ttl/2, end-ttl/3, end-ttl/6
}

// free returns the number of units that can still be taken from the hold.
func (h *localHold) free(now time.Duration) int64 {
	if h.ending || now >= h.stop {
		return 0
	}
	return h.size - h.taken
}

// take takes n units from the hold. It returns true if the settler has new work.
func (h *localHold) take(n int64, now time.Duration) bool {
	first := h.taken == h.asked
	if first {
		h.since = now
	}
	h.taken += n
	h.touched = true
	return first || h.taken == h.size
}

// action is what the settler does with a hold.
type action int

// The actions. Each of them except actionWait is a request to the service.
const (
	actionWait    action = iota
	actionCapture        // capture the taken units; the rest stays held
	actionFinish         // capture the taken units and return the rest
	actionRelease        // return all units
	actionExtend         // keep the hold for another TTL
)

// next returns the next action on the hold. If the action is actionWait, the caller must call next again at the time
// `due`.
//
// A hold is ended if all its units are taken, or if the service would soon end it. After half of its TTL, a hold in
// use is extended, and a hold that is not in use is released. A hold is not extended beyond the end of the period
// that pays for it, because its units would be carried into the next period.
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

// sizing decides how many units the next hold has.
type sizing struct {
	min, max int64

	chunk     int64         // size of the last hold
	missing   int64         // the largest number of units that a Take lacked since the last hold
	remaining int64         // remaining units of the balance in the last answer
	known     bool          // whether remaining is known
	rate      float64       // taken units per second, an average
	taken     int64         // units taken before the last hold was requested
	at        time.Duration // when the last hold was requested
}

// share is a divisor: one hold has at most 1/share of the balance's remaining units. So all processes that request
// units get some of the last units of a balance.
const share = 4

// low returns the number of free units at which the next hold is requested. At the rate with which the last hold's
// size was computed, these units last for half a second.
func (s *sizing) low() int64 { return (s.chunk + 1) / 2 }

// miss records that a Take lacked n units.
func (s *sizing) miss(n int64) { s.missing = max(s.missing, n) }

// next returns the size of the next hold. Normally it is the use of one second, by an average rate. If units were
// missing since the last hold, it is at least twice the last hold. It is at most 1/share of the remaining units. In
// every case it has the units that a single Take lacked.
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

// cut limits the size of a hold to 1/share of the remaining units, but not below the units that a Take lacked.
func (s *sizing) cut(want int64) int64 {
	if s.known {
		want = min(want, max(s.remaining, 0)/share+1)
	}
	s.chunk = max(want, s.missing)
	return s.chunk
}

// smaller returns the size of a smaller hold, after the service has denied a hold because too few units remain. The
// argument `available` is the number of remaining units. If a smaller hold is not useful, smaller returns 0.
func (s *sizing) smaller(available int64) int64 {
	if available < 1 || available < s.missing || available >= s.chunk {
		return 0
	}
	s.known, s.remaining = true, available
	return s.cut(s.chunk)
}
