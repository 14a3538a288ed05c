package rule

import "time"

// Moment is the time of a decision and its calendar.
type Moment struct {
	Now  int64          // µs
	Zone *time.Location // of calendar windows; nil is UTC
}

// Limit is the arithmetic of a rule in Go. The script does the same arithmetic, with the same results.
// Implementations are comparable values; equal values decide alike.
//
// Every decision is made on a Level. A Level comes from a stored State (Advance) or from the script's reply (Read).
type Limit interface {
	// Capacity returns the largest cost that can pass, in tokens.
	Capacity() int64
	// Params returns the parameters for the script at a moment.
	Params(at Moment) Params
	// Width returns the number of integers for a verdict in the script's reply, including the code.
	Width() int
	// Read returns the level behind a verdict of the script. row has the integers of the verdict after the code.
	// ahead is the µs by which the bucket's time is ahead, now the script's time, and sent the parameters of the
	// call.
	Read(row []int64, ahead, now int64, sent Params) Level

	// Advance returns the level of a stored state at a moment.
	Advance(s State, at Moment) Level
	// fits reports whether a cost of at most the capacity can be charged.
	fits(st Level, cost int64) bool
	// Charge takes a cost that fits.
	Charge(st Level, cost int64) Level
	// Refund gives back a cost that was charged at the time at, or now if at is UnknownTime. It gives back at most
	// the missing tokens.
	Refund(st Level, cost, at int64) Level
	// Store returns the state to keep, and the time until which to keep it. After that the state is equal to no
	// state. now is the time of st by the clock of the process that keeps it.
	Store(st Level, now int64) (s State, until int64)

	// Debt returns the number of tokens by which a charge after the fact may take the bucket below zero.
	Debt() int64
	// Left returns the number of whole tokens left, rounded down. It is less than 0 if tokens are owed.
	Left(st Level) int64
	// Wait returns the time until a cost of at most the capacity fits. A microsecond earlier it does not fit.
	Wait(st Level, cost int64) time.Duration
	// Delay returns the time that an admitted request has to wait. own is the part of st that the request itself
	// charged.
	Delay(st Level, own int64) time.Duration

	// Share returns a portion of the limit. No cost fits a portion without tokens.
	Share(p Portion) Limit
	// Scale converts a stored state of another limit of this kind to the same fraction of this limit, rounded up.
	Scale(s State, from Limit) State
}

// State is a bucket between two requests. The zero value means that nothing was taken, or that everything has come
// back.
type State struct {
	At   int64   // µs; the time of the state
	Used int64   // taken, in units of the kind; 0..2^53-1
	Prev int64   // sliding window: tokens of the previous window
	Unit int64   // form of the rule at At. Buckets: units per token. Sliding window, log: its µs. Fixed window: its end, in µs
	Num  int64   // buckets: units that come back per µs, at the time At
	Log  []int64 // sliding log: the time of each token, ascending; nil: all were taken at At. It is only appended to
}

// Empty reports whether there is no state.
func (s *State) Empty() bool { return s.Used == 0 && s.Prev == 0 }

// Level is a bucket as of now.
type Level struct {
	Now       int64 // µs
	Used      int64 // in units of the kind
	Ahead     int64 // µs by which the bucket's time is ahead of now; until then nothing comes back
	Rebased   bool  // the clock was set back: store even after a denial, or the bucket's time does not pass
	MustStore bool  // the state had another form of the rule: store even after a denial, or it ends at its old time

	start, end int64      // windows: the bounds of the one that contains Now+Ahead, in µs
	Prev       int64      // sliding window: tokens of the previous window
	log        []int64    // sliding log: the time of each token, ascending
	fromScript *logAnswer // sliding log: from a reply of the script; then log is nil
}

// logAnswer has the times that only the script can compute, because the log is in Redis. They are the µs until the
// cost fits, until one more token fits than now, and until all tokens fit.
type logAnswer [3]int64

func (t *logAnswer) retry() time.Duration { return Micros(t[0]) }
func (t *logAnswer) next() time.Duration  { return Micros(t[1]) }
func (t *logAnswer) reset() time.Duration { return Micros(t[2]) }

// advancing returns the level of a full bucket whose time is ts.
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

// UnknownTime is the time of a charge if it is not known. The script uses the same value.
const UnknownTime = 0

// Code is the verdict of one bucket on one request. The script uses the same values.
type Code int64

// These are the codes.
const (
	Pass    Code = 0
	Denied  Code = 1 // denied now; the cost passes later
	Never   Code = 2 // the cost is beyond the capacity
	Corrupt Code = 3 // the stored value is not a bucket
	Stale   Code = 4 // Redis's clock was in none of the given windows
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

// Remaining returns the number of whole tokens that can be taken now. It is 0 for a bucket that owes.
func Remaining(l Limit, st Level) int64 { return max(0, l.Left(st)) }

// Taken returns the part of a cost that a charge after the fact takes: at most the tokens left plus the tokens that
// may be owed.
func Taken(l Limit, st Level, cost int64) int64 { return max(0, min(cost, l.Left(st)+l.Debt())) }

// maxAheadUS bounds the µs by which a bucket's time may be ahead of now. Up to this bound the bucket waits: two
// servers after a failover, or a slewed clock, differ by less. Beyond it, the clock was set back, and waiting would
// deny for too long.
const maxAheadUS = 5_000_000

// Portion is a replica's part of a bucket: Tokens of its capacity, possibly 0, and one of Holders equal parts of its
// rate.
type Portion struct{ Tokens, Holders int64 }
