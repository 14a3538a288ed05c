package redisstore

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// The breaker counts calls. One pipeline is one call. The latest breakerWindow (20) calls count, if none of them is
	// older than breakerAge (10 s). The breaker does not count all calls of the last 10 s. A server that stops
	// answering fails only a few calls per second. These failures would be few among the earlier successes.
	breakerWindow = 20
	breakerAge    = 10 * time.Second

	// breakerFailures is half of breakerWindow. The breaker opens if this number of the latest breakerWindow calls
	// failed.
	breakerFailures = breakerWindow / 2

	// breakerStreak is the number of failures in a row that opens the breaker at once. Each call to a hanging server
	// takes its whole timeout, so 20 calls would take seconds. The breaker also opens after this number of rejected
	// writes without an accepted write between them. Successful reads do not prove that the server accepts writes.
	breakerStreak = 5

	// RetryAfter is the time for which an open breaker refuses all calls. The next call after this time is the probe.
	RetryAfter = 5 * time.Second
)

// breaker stops requests to a server that does not answer or rejects writes. A closed breaker counts calls. An open
// breaker refuses calls. After RetryAfter it lets one probe through, and the result of the probe closes or reopens
// the breaker.
type breaker struct {
	onChange func(open bool, err error) // called under mu; err is why the breaker opened

	refusing  atomic.Bool  // open or probing; while it is false, admit takes no lock
	unwritten atomic.Int32 // rejected writes since the last accepted write
	closed    atomic.Int64 // ns of the time at which it closed again; 0: it has not opened yet

	mu       sync.Mutex
	until    time.Time // while the breaker is open: the time of the next probe
	probing  bool
	calls    [breakerWindow]outcome
	next     int // index of the oldest call in calls
	streak   int
	readOnly bool // open because writes are rejected
}

type outcome struct {
	at     time.Time // zero: no call is stored here yet
	failed bool
}

// pass is the answer of admit. A caller that gets passProbe must call endProbe later.
type pass int

const (
	passRefused pass = iota
	passCall
	passProbe
)

func (b *breaker) admit(now func() time.Time) pass {
	if !b.refusing.Load() {
		return passCall
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case !b.refusing.Load():
		return passCall
	case b.probing || now().Before(b.until):
		return passRefused
	default:
		b.probing = true
		return passProbe
	}
}

// record counts the outcome of a call and may open the breaker. If the breaker is already open, it ignores the
// outcome.
func (b *breaker) record(now time.Time, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.refusing.Load() {
		return
	}
	b.calls[b.next] = outcome{at: now, failed: err != nil}
	b.next = (b.next + 1) % breakerWindow
	if err == nil {
		b.streak = 0
		return
	}
	b.streak++
	refused := int32(0)
	if errors.Is(err, errReadOnly) {
		refused = b.unwritten.Add(1)
	}
	if b.streak >= breakerStreak || refused >= breakerStreak || b.halfFailed(now) {
		b.open(now, err)
	}
}

// wrote records that a call has written something.
func (b *breaker) wrote() {
	if b.unwritten.Load() != 0 {
		b.unwritten.Store(0)
	}
}

// isReadOnly reports whether the breaker opened because the server rejects writes. Then only an accepted write proves
// that the server works.
func (b *breaker) isReadOnly() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.readOnly
}

// endProbe ends a probe with its result. The result is undecided if the caller left before the probe was sent. Then
// the next request is the probe, without a pause.
func (b *breaker) endProbe(now time.Time, result probe) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.probing = false
	switch result {
	case probeUndecided:
		b.until = now
	case probeFailed:
		b.until = now.Add(RetryAfter)
	case probePassed:
		b.closed.Store(now.UnixNano())
		b.close()
	}
}

// returning reports whether the next call is a probe, or the breaker closed less than `within` ago.
func (b *breaker) returning(now time.Time, within time.Duration) bool {
	if !b.refusing.Load() {
		closed := b.closed.Load()
		return closed != 0 && now.UnixNano()-closed < within.Nanoseconds()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.probing || !now.Before(b.until)
}

// reset closes an open breaker without a probe, because its server is no longer in use.
func (b *breaker) reset() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.refusing.Load() {
		b.close()
	}
}

type probe int

const (
	probeUndecided probe = iota
	probeFailed
	probePassed
)

// isOpen reports whether calls are refused.
func (b *breaker) isOpen() bool { return b.refusing.Load() }

// refusesAll reports whether the breaker is open and no probe is in progress. Then requests that are still queued are
// refused instead of sent.
func (b *breaker) refusesAll() bool {
	if !b.refusing.Load() {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.refusing.Load() && !b.probing
}

func (b *breaker) open(now time.Time, err error) {
	b.until = now.Add(RetryAfter)
	b.readOnly = errors.Is(err, errReadOnly)
	b.refusing.Store(true)
	b.onChange(true, err)
}

// close closes the breaker and clears the failures that opened it.
func (b *breaker) close() {
	b.calls, b.streak, b.readOnly = [breakerWindow]outcome{}, 0, false
	b.unwritten.Store(0)
	b.refusing.Store(false)
	b.onChange(false, nil)
}

func (b *breaker) halfFailed(now time.Time) bool {
	failed := 0
	for _, c := range b.calls {
		if c.at.IsZero() || now.Sub(c.at) > breakerAge {
			return false // fewer than breakerWindow calls are new enough
		}
		if c.failed {
			failed++
		}
	}
	return failed >= breakerFailures
}
