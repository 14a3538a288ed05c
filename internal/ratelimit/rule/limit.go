package rule

import "time"

// moment is when something is decided, and on whose calendar.
type Moment struct {
	Now  int64          // us
	Zone *time.Location // of windows that follow a calendar; nil is UTC
}

// limit is a rule's arithmetic: in Go what its kind is in the script, with the same answers. Implementations are
// comparable values: equal ones decide alike.
//
// Everything is decided on a settled state. It comes from a stored one (settle) or from the script's reply (read).
type Limit interface {
	// capacity is in tokens.
	Capacity() int64
	// params are what the script needs to know at a moment.
	Params(at Moment) Params
	// width is the script's integers per verdict, the code included.
	Width() int
	// read is the state behind a verdict of the script: its integers after the code, by how much the bucket's time is ahead,
	// the script's time, and the parameters it had.
	Read(row []int64, ahead, now int64, sent Params) Level

	// settle brings a stored state to a moment.
	Advance(s State, at Moment) Level
	// fits reports whether a cost of at most the capacity can be charged.
	fits(st Level, cost int64) bool
	// charge needs a cost that fits.
	Charge(st Level, cost int64) Level
	// refund gives back what was charged at the time at; unknownTime is now. What is no longer missing is not given back.
	Refund(st Level, cost, at int64) Level
	// store is what to keep, and until when: from then on it says no more than no state at all. now is the moment of st by the
	// clock of whoever keeps it.
	Store(st Level, now int64) (s State, until int64)

	// remaining is the whole tokens that could be taken now.
	Remaining(st Level) int64
	// wait is the time until a cost of at most the capacity fits, exact to the microsecond: one earlier it does not.
	Wait(st Level, cost int64) time.Duration
	// delay is how long a request has to wait for its turn. own is the part of st that it charged itself.
	Delay(st Level, own int64) time.Duration

	// share is a part of the limit. One of no tokens fits nothing.
	Share(p Portion) Limit
	// scale turns a state of another limit of this kind, as store made it, into the same fraction of this one, rounded up.
	Scale(s State, from Limit) State
}

// state is what is kept of a bucket between requests. The zero value is no state: nothing was taken, or all has come back.
type State struct {
	Ts   int64   // us; the state is as of this time
	Used int64   // what was taken, in the kind's units; 0..2^53-1
	prev int64   // sliding window: tokens of the window before
	Unit int64   // when it was written, buckets: units per token; sliding window: us per window
	Log  []int64 // sliding log: when each token was taken, ascending; nil: all of used were taken at ts. Appended to only
}

func (s *State) Empty() bool { return s.Used == 0 && s.prev == 0 }

// settled is a state as of now.
type Level struct {
	Now     int64 // us
	Used    int64 // in the kind's units
	Ahead   int64 // us by which the bucket's time is ahead of now: nothing comes back before they have passed
	Rebased bool  // the clock was set back: the state must be stored whatever is decided, or time stands still

	start, end int64      // windows: that of now+ahead, in us
	Prev       int64      // sliding window: tokens of the window before
	log        []int64    // sliding log: when each token was taken, ascending
	fromScript *logAnswer // sliding log: what the script said, and log is nil
}

// told is what only the script knows, as the log stays in Redis: in how many us the cost fits, one more token than now, all.
type logAnswer [3]int64

func (t *logAnswer) retry() time.Duration { return Micros(t[0]) }
func (t *logAnswer) next() time.Duration  { return Micros(t[1]) }
func (t *logAnswer) reset() time.Duration { return Micros(t[2]) }

// settling is the settled state of a bucket whose time is ts, with nothing in it yet.
func advancing(ts, now int64) Level {
	switch {
	case ts <= now:
		return Level{Now: now}
	case ts-now <= maxAheadUS:
		return Level{Now: now, Ahead: ts - now}
	default:
		return Level{Now: now, Rebased: true}
	}
}

// unknownTime is the time of a charge that nobody remembers. The script's value is the same.
const UnknownTime = 0

// code is the verdict of one bucket on one request. The values are the script's.
type Code int64

const (
	Pass    Code = 0
	Denied  Code = 1 // for now: RetryAfter says how long
	Never   Code = 2 // the cost is beyond the capacity
	Corrupt Code = 3 // the stored value is not a bucket
	Stale   Code = 4 // the script was given other windows than the one it is in
)

// judge is what l says about a cost.
func Judge(l Limit, st Level, cost int64) Code {
	switch {
	case cost > l.Capacity():
		return Never
	case !l.fits(st, cost):
		return Denied
	default:
		return Pass
	}
}

// maxAheadUS is how far a bucket's time may be ahead of now before that counts as a clock that was set back. Up to here
// the bucket just waits: two servers after a failover, or a slewed clock, differ by less. Beyond, waiting would starve.
const maxAheadUS = 5_000_000

// portion is a replica's part of a bucket: tokens of its capacity, which may be none, and one of the holders' equal parts of
// its rate.
type Portion struct{ Tokens, Holders int64 }
