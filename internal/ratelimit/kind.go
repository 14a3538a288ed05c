package ratelimit

import (
	"fmt"
	"time"
)

// Kind is what a rule's bucket does. The values are the script's.
type Kind int

const (
	// KindTokenBucket refills continuously at the rate up to the burst.
	KindTokenBucket Kind = 1
	// KindConcurrency bounds how much is under way at a time, by leases. Its script is leases, and only leases take it.
	KindConcurrency Kind = 6
)

// kindNames are the kinds as the API writes them and as the buckets' keys do. The letter is part of the key because
// another kind's state means something else.
func kindNames() map[Kind]struct{ name, letter string } {
	return map[Kind]struct{ name, letter string }{
		KindTokenBucket: {"token_bucket", "t"},
		KindConcurrency: {"concurrency", "c"},
	}
}

// String is the kind as the API writes it.
func (k Kind) String() string {
	if names, ok := kindNames()[k]; ok {
		return names.name
	}
	return fmt.Sprintf("kind(%d)", int(k))
}

// Windowed reports whether tokens come back all at once, at an instant that is the same for many: then those who were
// denied should not all return at that instant.
func (k Kind) Windowed() bool {
	return k.String() == "fixed_window" || k.String() == "sliding_window"
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
	// refund gives back what was charged at the time at in us; 0 is now. What is no longer missing is not given back.
	refund(st settled, cost, at int64) settled
	// store is what to keep of a state settled at now, and until when: from then on it says no more than no state at all.
	store(st settled, now int64) (s state, until int64)

	// remaining is the whole tokens that could be taken now.
	remaining(st settled) int64
	// wait is the time until a cost of at most the capacity fits, exact to the microsecond: one earlier it does not.
	wait(st settled, cost int64) time.Duration
	// delay is how long a request of cost that was charged to reach st has to wait for its turn.
	delay(st settled, cost int64) time.Duration

	// share is one n'th of the limit, at least one token; n is 2..maxReplicas.
	share(n int64) limit
	// scale turns a state of another limit of this kind into the same fraction of this one, rounded up.
	scale(s state, from limit) state
}

// state is what is kept of a bucket between requests. The zero value is no state: nothing was taken, or all has come back.
type state struct {
	ts   int64 // us; the state is as of this time
	used int64 // what was taken, in the kind's units; 0..2^53-1
	s    int64 // buckets: units per token when used was written
}

// settled is a state as of now.
type settled struct {
	used    int64 // in the kind's units
	ahead   int64 // us by which the bucket's time is ahead of now: nothing comes back before they have passed
	rebased bool  // the clock was set back: the state must be stored whatever is decided, or time stands still
}

// code is the verdict of one bucket on one request. The values are the script's.
type code int64

const (
	codePass    code = 0
	codeDenied  code = 1 // for now: RetryAfter says how long
	codeNever   code = 2 // the cost is beyond the capacity
	codeCorrupt code = 3 // the stored value is not a bucket
)

// verdict is what l says about a cost.
func verdict(l limit, st settled, cost int64) code {
	switch {
	case cost > l.capacity():
		return codeNever
	case !l.fits(st, cost):
		return codeDenied
	default:
		return codePass
	}
}
