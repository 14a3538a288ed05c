package ratelimit

import (
	"fmt"
	"math/bits"
	"strings"
	"time"
)

// Kind is what a rule's bucket does. The values are the script's.
type Kind int

const (
	// KindTokenBucket refills continuously at the rate up to the burst.
	KindTokenBucket Kind = 1
	// KindLeakyBucket is a queue of the burst's length that is worked off at the rate: an admitted request has to wait for
	// its turn (Verdict.Delay), so that what passes is evenly spaced.
	KindLeakyBucket Kind = 2
	// KindFixedWindow counts anew from each start of a minute, hour, day, week or month of a calendar, or of another period
	// since the epoch. Around a start it may pass twice its count.
	KindFixedWindow Kind = 3
	// KindSlidingWindow adds to the count of the current window the part of the last one's that the sliding window still
	// covers, as if it had been spread evenly.
	KindSlidingWindow Kind = 4
	// KindSlidingLog remembers when each token was taken, up to 1,000 of them: exact in every interval.
	KindSlidingLog Kind = 5
	// KindConcurrency bounds how much is under way at a time, by leases. Its script is leases, and only leases take it.
	KindConcurrency Kind = 6
)

// names are the kind as the API writes it and as the buckets' keys do. The letter is part of the key because another kind's
// state means something else. Every verdict asks for the name: a switch costs nothing.
func (k Kind) names() (name, letter string) {
	switch k {
	case KindTokenBucket:
		return "token_bucket", "t"
	case KindLeakyBucket:
		return "leaky_bucket", "l"
	case KindFixedWindow:
		return "fixed_window", "f"
	case KindSlidingWindow:
		return "sliding_window", "s"
	case KindSlidingLog:
		return "sliding_log", "g"
	case KindConcurrency:
		return "concurrency", "c"
	default:
		return fmt.Sprintf("kind(%d)", int(k)), ""
	}
}

// String is the kind as the API writes it.
func (k Kind) String() string {
	name, _ := k.names()
	return name
}

// letter is the kind in keys.
func (k Kind) letter() string {
	_, letter := k.names()
	return letter
}

// Windowed reports whether tokens come back all at once, at an instant that is the same for many: then those who were
// denied should not all return at that instant.
func (k Kind) Windowed() bool {
	return k == KindFixedWindow || k == KindSlidingWindow
}

// parseKind reads what String writes; "" is token_bucket.
func parseKind(s string) (Kind, error) {
	if s == "" {
		return KindTokenBucket, nil
	}
	for k := KindTokenBucket; k <= KindConcurrency; k++ {
		if s == k.String() {
			return k, nil
		}
	}
	return 0, &FieldError{"kind", fmt.Sprintf(
		"%q is not token_bucket, leaky_bucket, fixed_window, sliding_window, sliding_log or concurrency", clip(s))}
}

// moment is when something is decided, and on whose calendar.
type moment struct {
	now  int64          // us
	zone *time.Location // of windows that follow a calendar; nil is UTC
}

// params are a key's parameters for the script.
type params [4]int64

// limit is a rule's arithmetic: in Go what its kind is in the script, with the same answers. Implementations are
// comparable values: equal ones decide alike.
//
// Everything is decided on a settled state. It comes from a stored one (settle) or from the script's reply (read).
type limit interface {
	// capacity is in tokens.
	capacity() int64
	// params are what the script needs to know at a moment.
	params(at moment) params
	// width is the script's integers per verdict, the code included.
	width() int
	// read is the state behind a verdict of the script: its integers after the code, by how much the bucket's time is ahead,
	// the script's time, and the parameters it had.
	read(row []int64, ahead, now int64, sent params) settled

	// settle brings a stored state to a moment.
	settle(s state, at moment) settled
	// fits reports whether a cost of at most the capacity can be charged.
	fits(st settled, cost int64) bool
	// charge needs a cost that fits.
	charge(st settled, cost int64) settled
	// refund gives back what was charged at the time at; unknownTime is now. What is no longer missing is not given back.
	refund(st settled, cost, at int64) settled
	// store is what to keep, and until when: from then on it says no more than no state at all. now is the moment of st by the
	// clock of whoever keeps it.
	store(st settled, now int64) (s state, until int64)

	// remaining is the whole tokens that could be taken now.
	remaining(st settled) int64
	// wait is the time until a cost of at most the capacity fits, exact to the microsecond: one earlier it does not.
	wait(st settled, cost int64) time.Duration
	// delay is how long a request has to wait for its turn. own is the part of st that it charged itself.
	delay(st settled, own int64) time.Duration

	// share is a part of the limit. One of no tokens fits nothing.
	share(p portion) limit
	// scale turns a state of another limit of this kind, as store made it, into the same fraction of this one, rounded up.
	scale(s state, from limit) state
}

// state is what is kept of a bucket between requests. The zero value is no state: nothing was taken, or all has come back.
type state struct {
	ts   int64   // us; the state is as of this time
	used int64   // what was taken, in the kind's units; 0..2^53-1
	prev int64   // sliding window: tokens of the window before
	unit int64   // when it was written, buckets: units per token; sliding window: us per window
	log  []int64 // sliding log: when each token was taken, ascending; nil: all of used were taken at ts. Appended to only
}

func (s *state) empty() bool { return s.used == 0 && s.prev == 0 }

// settled is a state as of now.
type settled struct {
	now     int64 // us
	used    int64 // in the kind's units
	ahead   int64 // us by which the bucket's time is ahead of now: nothing comes back before they have passed
	rebased bool  // the clock was set back: the state must be stored whatever is decided, or time stands still

	start, end int64   // windows: that of now+ahead, in us
	prev       int64   // sliding window: tokens of the window before
	log        []int64 // sliding log: when each token was taken, ascending
	told       *told   // sliding log: what the script said, and log is nil
}

// told is what only the script knows, as the log stays in Redis: in how many us the cost fits, one more token than now, all.
type told [3]int64

func (t *told) retry() time.Duration { return micros(t[0]) }
func (t *told) next() time.Duration  { return micros(t[1]) }
func (t *told) reset() time.Duration { return micros(t[2]) }

// settling is the settled state of a bucket whose time is ts, with nothing in it yet.
func settling(ts, now int64) settled {
	switch {
	case ts <= now:
		return settled{now: now}
	case ts-now <= maxAheadUS:
		return settled{now: now, ahead: ts - now}
	default:
		return settled{now: now, rebased: true}
	}
}

// unknownTime is the time of a charge that nobody remembers. The script's value is the same.
const unknownTime = 0

// code is the verdict of one bucket on one request. The values are the script's.
type code int64

const (
	codePass    code = 0
	codeDenied  code = 1 // for now: RetryAfter says how long
	codeNever   code = 2 // the cost is beyond the capacity
	codeCorrupt code = 3 // the stored value is not a bucket
	codeStale   code = 4 // the script was given other windows than the one it is in
)

// judge is what l says about a cost.
func judge(l limit, st settled, cost int64) code {
	switch {
	case cost > l.capacity():
		return codeNever
	case !l.fits(st, cost):
		return codeDenied
	default:
		return codePass
	}
}

// maxAheadUS is how far a bucket's time may be ahead of now before that counts as a clock that was set back. Up to here
// the bucket just waits: two servers after a failover, or a slewed clock, differ by less. Beyond, waiting would starve.
const maxAheadUS = 5_000_000

// fraction is the same part of to as used is of from, rounded up: all of it from the full measure on.
func fraction(used, from, to int64) int64 {
	if used >= from {
		return to
	}
	return mulDivCeil(used, to, from)
}

// mulCap is a*b for non-negative a and b, capped far beyond all exact values.
func mulCap(a, b int64) int64 {
	const most = 1 << 61 // so that two of them can be added
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	if hi != 0 || lo > most {
		return most
	}
	return int64(lo)
}

// mantissas are the script's MANTISSAS.
const mantissas = "\x01\x02\x03\x04\x05\x06\x08\x09\x0c\x0f\x12\x18\x19\x24\x48\x4b"

// short is the script's short form of n.
func short(n int64) int64 {
	m, e := n, int64(0)
	for m%10 == 0 {
		m, e = m/10, e+1
	}
	if i := strings.IndexByte(mantissas, byte(m)); m < 128 && i >= 0 && e >= 1 && e <= 8 {
		return int64(i)*8 + e - 1
	}
	for ; e > 7; e-- {
		m *= 10
	}
	return 128 + m*8 + e
}

func micros(us int64) time.Duration { return time.Duration(us) * time.Microsecond }
