package pg

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/ledger"
)

// lockMemory is how long a balance counts as locked after it was last seen locked. During this time its operations
// are parked, and lockWait runs them at once. So a lane waits lockTimeout only once for a locked balance, even if the
// balance is rarely used.
const lockMemory = 10 * time.Second

// lockWait is the queue of parked calls: another transaction has locked their balances, and the lanes go on without
// them. Its goroutine runs parked calls on a connection of its own. It keeps the calls in order: a later call waits
// behind the earlier calls of the same balance.
//
// Each round runs the first call of every locked balance without waiting for locks. If a first call succeeds, the
// other calls of its balance follow. If no first call succeeds, the round waits for one balance up to lockPatience,
// each round for another balance. This wait is in PostgreSQL's own lock queue: without this wait, a row that other
// transactions lock again and again might never be free.
type lockWait struct {
	ledger *Ledger
	cancel context.CancelFunc
	ended  chan struct{}
	inUse  atomic.Bool // some balances are known to be locked

	mu     sync.Mutex
	work   sync.Cond
	calls  []*waitingCall // in order; the next round removes answered calls
	locked map[ledger.BalanceKey]*lockedBalance
	rounds int // number of rounds that waited for one balance; it selects the balance of the next such round
	closed bool
}

// lockedBalance is a balance that another transaction has locked, as far as is known.
type lockedBalance struct {
	calls int // number of calls that wait for this balance
	since time.Time
	seen  time.Time
}

// waitingCall is a parked call with its caller.
type waitingCall struct {
	parkedCall

	by     time.Time // deadline for its caller's answer
	caller *caller
	state  callState
}

type callState int

const (
	callParked callState = iota
	callRunning
	callAnswered
)

// caller waits for the answers to its parked calls.
type caller struct {
	until time.Time // from then on its calls that are not running are refused
	done  chan struct{}

	// The queue's mutex protects these fields.
	left int    // calls without an answer
	over reason // why the calls no longer wait; empty while they wait
}

func newLockWait(l *Ledger) *lockWait {
	ctx, cancel := context.WithCancel(context.Background())
	w := &lockWait{
		ledger: l, cancel: cancel, ended: make(chan struct{}), locked: map[ledger.BalanceKey]*lockedBalance{},
	}
	w.work.L = &w.mu
	go w.loop(ctx)
	return w
}

// stop refuses the calls that wait, and ends the goroutine after the batch that it is running.
func (w *lockWait) stop(ctx context.Context) error {
	w.mu.Lock()
	w.closed = true
	for _, c := range w.calls {
		if c.state == callParked {
			w.refuse(c, reasonStopping, errStopping)
		}
	}
	w.work.Signal()
	w.mu.Unlock()
	defer w.cancel()
	select {
	case <-w.ended:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("ledger: stop the queue of parked operations: %w", ctx.Err())
	}
}

// lockedBalances returns how many balances have parked calls.
func (w *lockWait) lockedBalances() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 0
	for _, b := range w.locked {
		if b.calls > 0 {
			n++
		}
	}
	return n
}

// filterRunnable returns a plan with the calls of p that can run. Calls that have to wait behind parked calls are
// parked. It parks only calls that name all their balances; for other calls, the attempt finds locked balances.
func (w *lockWait) filterRunnable(p *plan) *plan {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	for k, b := range w.locked {
		if b.calls == 0 && now.Sub(b.seen) > lockMemory {
			delete(w.locked, k)
		}
	}
	w.inUse.Store(len(w.locked) > 0)
	runnable := make([]*ledger.Call, 0, len(p.calls))
	var parked []parkedCall
	for _, c := range p.calls {
		if keys := w.waitsFor(c); len(keys) > 0 {
			parked = append(parked, parkedCall{call: c, keys: keys})
		} else {
			runnable = append(runnable, c)
		}
	}
	if len(parked) == 0 {
		return p
	}
	filtered := newPlan(runnable)
	filtered.parked = parked
	return filtered
}

// waitsFor returns the locked balances that c needs. The caller holds mu.
func (w *lockWait) waitsFor(c *ledger.Call) []ledger.BalanceKey {
	p := newPlan([]*ledger.Call{c})
	if !p.targets.None() {
		return nil
	}
	p.located = &ledger.Located{}
	isFree := func(k ledger.BalanceKey) bool { return w.locked[k] == nil }
	return slices.DeleteFunc(p.keysOf(c, w.ledger.learned), isFree)
}

// add adds parked calls to the queue. For each group it returns a function that waits for the answers of the group's
// parked calls, or nil if the group has no parked call.
func (w *lockWait) add(groups []group, parked []parkedCall) []func(context.Context) {
	callers := make([]*caller, len(groups))
	waits := make([]func(context.Context), len(groups))
	groupOf := map[*ledger.Call]int{}
	for i, g := range groups {
		for _, c := range g.calls {
			groupOf[c] = i
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ledger.metrics.parked.Add(float64(len(parked)))
	for _, c := range parked {
		i := groupOf[c.call]
		switch {
		case w.closed:
			w.ledger.refuseAll([]*ledger.Call{c.call}, c.mayBeStored, reasonStopping, errStopping)
			continue
		case len(w.calls) >= w.ledger.cfg.MaxQueue:
			w.ledger.refuseAll([]*ledger.Call{c.call}, c.mayBeStored, reasonFull, nil)
			continue
		}
		if callers[i] == nil {
			callers[i] = &caller{until: groups[i].by.Add(parkedMax - refusalMax), done: make(chan struct{})}
			waits[i] = func(ctx context.Context) { w.await(ctx, callers[i]) }
		}
		callers[i].left++
		w.calls = append(w.calls, &waitingCall{parkedCall: c, by: groups[i].by, caller: callers[i]})
		w.markLocked(c.keys, 1)
	}
	w.work.Signal()
	return waits
}

// markLocked records that the balances in keys are locked, and that n more calls wait for them. The caller holds mu.
func (w *lockWait) markLocked(keys []ledger.BalanceKey, n int) {
	now := time.Now()
	for _, k := range keys {
		b := w.locked[k]
		if b == nil {
			b = &lockedBalance{since: now}
			w.locked[k] = b
			w.inUse.Store(true)
			w.ledger.log.Warn("a balance is locked by another transaction; its operations wait, others go on",
				"tenant", k.Tenant, "meter", k.Meter, "subject", k.Subject)
		}
		b.calls += n
		b.seen = now
	}
}

// await waits until the calls of a caller are answered. When the caller's time is over or ctx ends, it refuses the
// calls that are not running.
func (w *lockWait) await(ctx context.Context, waiting *caller) {
	timer := time.NewTimer(time.Until(waiting.until))
	defer timer.Stop()
	r := reasonLocked
	select {
	case <-waiting.done:
		return
	case <-ctx.Done():
		r = reasonCancelled
	case <-timer.C:
	}
	w.mu.Lock()
	waiting.over = r
	for _, c := range w.calls {
		if c.caller == waiting && c.state == callParked {
			w.refuse(c, r, ctx.Err())
		}
	}
	w.mu.Unlock()
	<-waiting.done // for a call that is running, the end of its batch decides
}

// refuse answers a call that is not running. The caller holds mu.
func (w *lockWait) refuse(c *waitingCall, r reason, cause error) {
	w.ledger.refuseAll([]*ledger.Call{c.call}, c.mayBeStored, r, cause)
	if e, ok := errors.AsType[*errcode.Error](c.call.Err); ok && r == reasonLocked && !c.mayBeStored {
		e.Detail = fmt.Sprintf("the balance of meter %q is locked by another transaction; %s",
			c.keys[0].Meter, ledger.NothingDone)
	}
	w.finish(c)
}

// finish marks a call as answered, and lets its caller go on if it was the caller's last call. The caller holds mu.
func (w *lockWait) finish(c *waitingCall) {
	c.state = callAnswered
	for _, k := range c.keys {
		w.locked[k].calls--
	}
	if c.caller.left--; c.caller.left == 0 {
		close(c.caller.done)
	}
}

func (w *lockWait) loop(ctx context.Context) {
	defer close(w.ended)
	for w.next() {
		first := w.take(w.isFirst)
		if freed := w.run(ctx, first, stateSkipLocked); len(freed) > 0 {
			w.runFollowers(ctx, freed)
			continue
		}
		if k, ok := w.nextLocked(); ok {
			needsIt := func(c *waitingCall) bool { return slices.Contains(c.keys, k) }
			w.run(ctx, w.take(needsIt), stateWaitLong)
		}
	}
}

// next drops the answered calls and waits until other calls are parked. It returns false when the queue is closed.
func (w *lockWait) next() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for {
		w.calls = slices.DeleteFunc(w.calls, func(c *waitingCall) bool { return c.state == callAnswered })
		if w.closed {
			return false
		}
		if len(w.calls) > 0 {
			return true
		}
		w.work.Wait()
	}
}

// take returns the parked calls for which the function `want` returns true, oldest first, at most MaxBatch calls. It
// marks these calls as running.
func (w *lockWait) take(want func(*waitingCall) bool) []*waitingCall {
	w.mu.Lock()
	defer w.mu.Unlock()
	var taken []*waitingCall
	for _, c := range w.calls {
		if len(taken) == w.ledger.cfg.MaxBatch {
			break
		}
		if c.state == callParked && want(c) {
			c.state = callRunning
			taken = append(taken, c)
		}
	}
	return taken
}

// isFirst reports whether c is, for each of its balances, the first call without an answer. take calls it with mu held.
func (w *lockWait) isFirst(c *waitingCall) bool {
	for _, earlier := range w.calls {
		if earlier == c {
			return true
		}
		needsIt := func(k ledger.BalanceKey) bool { return slices.Contains(earlier.keys, k) }
		if earlier.state != callAnswered && slices.ContainsFunc(c.keys, needsIt) {
			return false
		}
	}
	return false
}

// nextLocked returns the locked balance to wait for in this round.
func (w *lockWait) nextLocked() (ledger.BalanceKey, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var keys []ledger.BalanceKey
	for k, b := range w.locked {
		if b.calls > 0 {
			keys = append(keys, k)
		}
	}
	if len(keys) == 0 {
		return ledger.BalanceKey{}, false
	}
	slices.SortFunc(keys, ledger.CompareKeys)
	w.rounds++
	return keys[w.rounds%len(keys)], true
}

// runFollowers runs the calls that wait only for freed balances, after the calls that ran first.
func (w *lockWait) runFollowers(ctx context.Context, freed keySet) {
	isLocked := func(k ledger.BalanceKey) bool { return !freed.has(k) }
	for {
		calls := w.take(func(c *waitingCall) bool { return !slices.ContainsFunc(c.keys, isLocked) })
		if len(calls) == 0 || len(w.run(ctx, calls, stateUsual)) == 0 {
			return
		}
	}
}

// run runs calls as a batch that begins in the given state. It puts back the calls whose balances are still locked,
// and returns the balances that were free.
func (w *lockWait) run(ctx context.Context, calls []*waitingCall, how state) (freed keySet) {
	if len(calls) == 0 {
		return nil
	}
	by := calls[0].by
	batch := make([]*ledger.Call, len(calls))
	for i, c := range calls {
		batch[i] = c.call
		if c.by.Before(by) {
			by = c.by
		}
	}
	ctx, cancel := context.WithDeadline(ctx, by)
	defer cancel()
	again := map[*ledger.Call]parkedCall{}
	for _, c := range w.ledger.runParked(ctx, batch, how) {
		again[c.call] = c
	}
	freed = keySet{}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range calls {
		if parked, ok := again[c.call]; ok {
			w.putBack(c, parked)
			continue
		}
		if c.mayBeStored && undecided(c.call.Err) {
			w.ledger.refuseAll([]*ledger.Call{c.call}, true, reasonUnknown, c.call.Err)
		}
		if c.call.Err == nil || !undecided(c.call.Err) {
			for _, k := range c.keys {
				freed[k] = struct{}{}
			}
		}
		w.finish(c)
	}
	w.forgetFree(freed)
	return freed
}

// putBack returns a call to the queue after its batch has parked it again. The caller holds mu.
func (w *lockWait) putBack(c *waitingCall, again parkedCall) {
	c.mayBeStored = c.mayBeStored || again.mayBeStored
	if len(again.keys) > 0 {
		for _, k := range c.keys {
			w.locked[k].calls--
		}
		c.keys = again.keys
		w.markLocked(c.keys, 1)
	} else {
		w.markLocked(c.keys, 0)
	}
	c.state = callParked
	switch {
	case w.closed:
		w.refuse(c, reasonStopping, errStopping)
	case c.caller.over != "":
		w.refuse(c, c.caller.over, nil)
	}
}

// forgetFree drops freed balances for which no call waits. The caller holds mu.
func (w *lockWait) forgetFree(freed keySet) {
	for k := range freed {
		if b := w.locked[k]; b != nil && b.calls == 0 {
			delete(w.locked, k)
			w.ledger.log.Info("a balance is no longer locked",
				"tenant", k.Tenant, "meter", k.Meter, "subject", k.Subject,
				"locked_seconds", time.Since(b.since).Seconds())
		}
	}
	w.inUse.Store(len(w.locked) > 0)
}

// undecided reports whether err is the refusal of an operation that was not decided.
func undecided(err error) bool {
	switch errcode.Of(err) {
	case errcode.Unavailable, errcode.QueueFull, errcode.Internal:
		return true
	default:
		return false
	}
}

// runParked runs parked calls like a lane runs queued calls, from the given state on. It returns the calls that are
// parked again. A panic fails the batch, as it does in a lane.
func (l *Ledger) runParked(ctx context.Context, calls []*ledger.Call, how state) (again []parkedCall) {
	defer func() {
		if v := recover(); v != nil {
			l.log.Error("ledger batch panicked",
				"calls", len(calls), "panic", fmt.Sprint(v), "stack", string(debug.Stack()))
			l.refuseAll(calls, true, reasonUnknown, fmt.Errorf("panic: %v", v))
			again = nil
		}
	}()
	p := newPlan(calls)
	p.state = how
	l.runBatches(ctx, p)
	return p.parked
}
