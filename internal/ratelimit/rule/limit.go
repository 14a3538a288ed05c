package rule

import "time"

// Moment is the time of a decision, and the time zone of its calendar windows.
type Moment struct {
	Now  int64          // µs
	Zone *time.Location // nil is UTC
}

// Limit is the arithmetic of a rule in Go. The script does the same arithmetic, with the same results.
// Implementations are comparable values, and equal values make equal decisions.
//
// Every decision is made on a Level. A Level comes from a stored State (Advance) or from the script's reply (Read).
type Limit interface {
	// Capacity returns the largest cost that can pass, in tokens.
	Capacity() int64
	// Params returns the parameters of the rule that are sent to the script for a decision at the given moment.
	Params(at Moment) Params
	// Width returns the number of integers that a verdict has in the script's reply, including the code.
	Width() int
	// Read returns the level of the bucket from a verdict of the script. row has the integers of the verdict after
	// the code. ahead is the time in µs by which the bucket's time is ahead of now. now is the script's time, and
	// sent are the parameters of the call.
	Read(row []int64, ahead, now int64, sent Params) Level

	// Advance returns the level of a stored state at a moment.
	Advance(s State, at Moment) Level
	// fits reports whether a cost of at most the capacity can be charged.
	fits(st Level, cost int64) bool
	// Charge returns the level after a charge of cost, which must fit. What would have come back by itself if it had
	// been charged together with an earlier charge is not charged. For windows and logs `at` is the time of the earlier
	// charge. For buckets it is the time at which the bucket would have been full again after this charge, rounded up
	// to a microsecond, if nothing else had been charged. UnknownTime means now.
	Charge(st Level, cost, at int64) Level
	// Refund returns the level after a refund of a cost of an earlier charge. `at` is as for Charge. Refund gives
	// back at most the missing tokens.
	Refund(st Level, cost, at int64) Level
	// Store returns the state to keep, and the time until which it must be kept. After this time the bucket is like
	// an unused one. now is the time of st by the clock of the process that keeps the state.
	Store(st Level, now int64) (s State, until int64)

	// Debt returns the number of tokens by which a charge after the fact may take the bucket below zero.
	Debt() int64
	// Left returns the number of whole tokens left, rounded down. It is less than 0 if tokens are owed.
	Left(st Level) int64
	// Wait returns the time until the cost fits, if nothing else is charged. A microsecond earlier it does not fit.
	// The cost must be at most the capacity.
	Wait(st Level, cost int64) time.Duration
	// Delay returns the time that an admitted request must wait in a leaky bucket. st is the level after the request's
	// charge, and own the number of tokens that the request charged.
	Delay(st Level, own int64) time.Duration

	// Share returns the limit of a replica's portion. If the portion has no tokens, no cost fits.
	Share(p Portion) Limit
	// Scale converts a stored state from another limit of the same kind. In the result the same fraction of the
	// capacity is used, rounded up.
	Scale(s State, from Limit) State
}

// State is the stored state of a bucket between two requests. The zero value means that no tokens are missing.
type State struct {
	At   int64   // µs; the time of the state
	Used int64   // taken tokens, in units of the kind; 0..2^53-1
	Prev int64   // sliding window: tokens of the previous window
	Unit int64   // buckets: units per token; sliding window, log: length in µs; fixed window: end in µs, rounded up
	Num  int64   // buckets: units that come back per µs, at the time At
	Log  []int64 // sliding log: the time of each token, ascending; nil: all were taken at At. It is only appended to
}

// Empty reports whether s is like the zero value: no tokens are missing.
func (s *State) Empty() bool { return s.Used == 0 && s.Prev == 0 }

// Level is the state of a bucket as of the time Now.
type Level struct {
	Now       int64 // µs
	Used      int64 // in units of the kind
	Ahead     int64 // µs by which the bucket's time is ahead of now; until then no tokens come back
	Rebased   bool  // the clock was set back: store even after a denial, else the bucket keeps its old time
	MustStore bool  // the rule's rate has changed: store even after a denial, else the old rate stays

	unit, num  int64      // buckets: State.Unit and State.Num, if the rule's rate has changed; else 0
	start, end int64      // windows: the bounds of the window that contains Now+Ahead, in µs
	Prev       int64      // sliding window: tokens of the previous window
	log        []int64    // sliding log: the time of each token, ascending
	fromScript *logAnswer // sliding log: set if the level is from a reply of the script; then log is nil
}

// logAnswer has the times that only the script can compute, because the log is in Redis. They are, in µs, the times
// until the cost fits, until one more token fits than now, and until the whole capacity fits.
type logAnswer [3]int64

func (t *logAnswer) retry() time.Duration { return Micros(t[0]) }
func (t *logAnswer) next() time.Duration  { return Micros(t[1]) }
func (t *logAnswer) reset() time.Duration { return Micros(t[2]) }

// advancing returns the level at now of a full bucket whose time is ts.
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

// UnknownTime is the value for the time of a charge if this time is not known. The script uses the same value.
const UnknownTime = 0

// Code is the verdict of one bucket on one request. The script uses the same values.
type Code int64

// These are the codes.
const (
	Pass    Code = 0
	Denied  Code = 1 // denied now; the cost passes later
	Never   Code = 2 // the cost exceeds the capacity
	Corrupt Code = 3 // the stored value is not a bucket
	Stale   Code = 4 // Redis's clock was in none of the given windows
	Again   Code = 5 // passes uncharged: the request's id has charged the rule before
)

// Judge returns the verdict of the limit l on a cost.
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

// Remaining returns the number of whole tokens that can be taken now. It is 0 for a bucket that owes tokens.
func Remaining(l Limit, st Level) int64 { return max(0, l.Left(st)) }

// Taken returns the number of tokens that a charge after the fact takes: the cost, but at most the tokens left plus
// the debt.
func Taken(l Limit, st Level, cost int64) int64 { return max(0, min(cost, l.Left(st)+l.Debt())) }

// maxAheadUS is the largest time, in µs, by which a bucket's time may be ahead of now. Up to this bound the bucket is
// not refilled until the clock has caught up. The clocks of two servers in a failover, or a slewed clock, differ by
// less. Beyond the bound, the clock was set back, and the bucket would deny for too long.
const maxAheadUS = 5_000_000

// Portion is a replica's part of a bucket: Tokens of its capacity, which may be 0, and 1/Holders of its rate.
type Portion struct{ Tokens, Holders int64 }

// counts has the fields and methods that windows and logs share: they count the taken tokens. A kind that computes a
// result differently has its own method.
type counts struct {
	tokens int64 // the limit
	debt   int64 // tokens that may be owed beyond the limit
}

// Capacity implements Limit.
func (c counts) Capacity() int64 { return c.tokens }

// Debt implements Limit.
func (c counts) Debt() int64 { return c.debt }

// Left implements Limit.
func (c counts) Left(st Level) int64 { return c.tokens - st.Used }

// Delay implements Limit.
func (c counts) Delay(Level, int64) time.Duration { return 0 }

func (c counts) fits(st Level, cost int64) bool { return st.Used <= c.tokens-cost }

// share returns the tokens and the debt of a replica's portion.
func (c counts) share(p Portion) counts { return counts{p.Tokens, partOf(c.debt, p.Tokens, c.tokens)} }
