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

	"github.com/quotasvc/quotasvc/internal/ledger"
)

// lockMemory is how long a balance counts as locked after it was last seen so. Its operations go to the shelf at once, and the shelf tries
// them at once: so a lane pays lockTimeout for a balance once, however rarely it is used while it is locked.
const lockMemory = 10 * time.Second

// shelf holds the calls whose balances another transaction has locked, so that the lanes go on without them. Its goroutine tries them on a
// connection of its own. It keeps them in order: a call that comes later waits behind the earlier ones of the same balance.
//
// Each round tries the oldest call of every locked balance without waiting. Where it succeeds, the other calls of that balance follow. If
// none succeeds, the round waits for one balance up to lockPatience, another one each time: a place in PostgreSQL's queue of waiters is the
// only way to a row that others take again and again.
type shelf struct {
	ledger *Ledger
	cancel context.CancelFunc
	ended  chan struct{}
	inUse  atomic.Bool // some balances are known to be locked

	mu     sync.Mutex
	work   sync.Cond
	calls  []*shelved // in order; withdrawn and answered ones leave with the next round
	locked map[ledger.BalanceKey]*lockedBalance
	turn   int // which locked balance is waited for next
	closed bool
}

// lockedBalance is a balance that another transaction has locked, as far as is known.
type lockedBalance struct {
	calls int // that wait for it
	since time.Time
	seen  time.Time
}

// shelved is a call on the shelf.
type shelved struct {
	heldCall

	by    time.Time // when its caller has to be answered
	owner *waiting
	state shelvedState
}

type shelvedState int

const (
	onShelf shelvedState = iota
	inTrial
	answeredCall
)

// waiting is what a caller waits for whose calls are on the shelf.
type waiting struct {
	until time.Time // then the calls that are not being tried are refused
	done  chan struct{}

	// The shelf's mutex protects these.
	left int    // calls without an answer
	over reason // why the calls wait no longer; empty while they do
}

func newShelf(l *Ledger) *shelf {
	ctx, cancel := context.WithCancel(context.Background())
	s := &shelf{ledger: l, cancel: cancel, ended: make(chan struct{}), locked: map[ledger.BalanceKey]*lockedBalance{}}
	s.work.L = &s.mu
	go s.run(ctx)
	return s
}

// stop refuses the calls that wait, and ends the goroutine after the trial that it is making.
func (s *shelf) stop(ctx context.Context) error {
	s.mu.Lock()
	s.closed = true
	for _, c := range s.calls {
		if c.state == onShelf {
			s.refuse(c, reasonStopping, errStopping)
		}
	}
	s.work.Signal()
	s.mu.Unlock()
	defer s.cancel()
	select {
	case <-s.ended:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("ledger: stop the trial of operations on locked balances: %w", ctx.Err())
	}
}

// lockedBalances returns how many balances have calls on the shelf.
func (s *shelf) lockedBalances() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, b := range s.locked {
		if b.calls > 0 {
			n++
		}
	}
	return n
}

// sift returns the plan of those of p's calls that can be tried. The others, which have to wait behind calls on the shelf, are held. Only calls
// that name all their balances are held; the rest find out for themselves.
func (s *shelf) sift(p *plan) *plan {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	for k, b := range s.locked {
		if b.calls == 0 && now.Sub(b.seen) > lockMemory {
			delete(s.locked, k)
		}
	}
	s.inUse.Store(len(s.locked) > 0)
	free := make([]*ledger.Call, 0, len(p.calls))
	var held []heldCall
	for _, c := range p.calls {
		if keys := s.waitsFor(c); len(keys) > 0 {
			held = append(held, heldCall{call: c, keys: keys})
		} else {
			free = append(free, c)
		}
	}
	if len(held) == 0 {
		return p
	}
	sifted := newPlan(free)
	sifted.held = held
	return sifted
}

// waitsFor returns the locked balances that c needs. The caller holds mu.
func (s *shelf) waitsFor(c *ledger.Call) []ledger.BalanceKey {
	p := newPlan([]*ledger.Call{c})
	if !p.plain {
		return nil
	}
	p.located = &ledger.Located{}
	return slices.DeleteFunc(p.keysOf(c, s.ledger.learned), func(k ledger.BalanceKey) bool { return s.locked[k] == nil })
}

// add puts calls on the shelf and returns functions that wait for their answers, per group; nil where no call of the group is among them.
func (s *shelf) add(groups []group, held []heldCall) []func(context.Context) {
	owners, waits := make([]*waiting, len(groups)), make([]func(context.Context), len(groups))
	groupOf := map[*ledger.Call]int{}
	for i, g := range groups {
		for _, c := range g.calls {
			groupOf[c] = i
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ledger.metrics.shelved.Add(float64(len(held)))
	for _, h := range held {
		i := groupOf[h.call]
		switch {
		case s.closed:
			s.ledger.refuseAll([]*ledger.Call{h.call}, h.unknown, reasonStopping, errStopping)
			continue
		case len(s.calls) >= s.ledger.cfg.MaxQueue:
			s.ledger.refuseAll([]*ledger.Call{h.call}, h.unknown, reasonFull, nil)
			continue
		}
		if owners[i] == nil {
			owners[i] = &waiting{until: groups[i].by.Add(shelfMax - refusalMax), done: make(chan struct{})}
			waits[i] = func(ctx context.Context) { s.await(ctx, owners[i]) }
		}
		owners[i].left++
		s.calls = append(s.calls, &shelved{heldCall: h, by: groups[i].by, owner: owners[i]})
		s.mark(h.keys, 1)
	}
	s.work.Signal()
	return waits
}

// mark notes that keys are locked, and that n more calls wait for them. The caller holds mu.
func (s *shelf) mark(keys []ledger.BalanceKey, n int) {
	now := time.Now()
	for _, k := range keys {
		b := s.locked[k]
		if b == nil {
			b = &lockedBalance{since: now}
			s.locked[k] = b
			s.inUse.Store(true)
			s.ledger.log.Warn("a balance is locked by another transaction; its operations wait, others go on",
				"tenant", k.Tenant, "meter", k.Meter, "subject", k.Subject)
		}
		b.calls += n
		b.seen = now
	}
}

// await waits until the calls of w are answered. When w's time is over or ctx ends, it refuses those that are not being tried.
func (s *shelf) await(ctx context.Context, w *waiting) {
	timer := time.NewTimer(time.Until(w.until))
	defer timer.Stop()
	r := reasonLocked
	select {
	case <-w.done:
		return
	case <-ctx.Done():
		r = reasonCancelled
	case <-timer.C:
	}
	s.mu.Lock()
	w.over = r
	for _, c := range s.calls {
		if c.owner == w && c.state == onShelf {
			s.refuse(c, r, ctx.Err())
		}
	}
	s.mu.Unlock()
	<-w.done // of a call that is being tried, the trial's end decides
}

// refuse answers a call that is not being tried. The caller holds mu.
func (s *shelf) refuse(c *shelved, r reason, cause error) {
	s.ledger.refuseAll([]*ledger.Call{c.call}, c.unknown, r, cause)
	if e, ok := errors.AsType[*ledger.Error](c.call.Err); ok && r == reasonLocked && !c.unknown {
		e.Detail = fmt.Sprintf("the balance of meter %q is locked by another transaction; %s", c.keys[0].Meter, ledger.NothingDone)
	}
	s.release(c)
}

// release lets the caller of an answered call go on. The caller holds mu.
func (s *shelf) release(c *shelved) {
	c.state = answeredCall
	for _, k := range c.keys {
		s.locked[k].calls--
	}
	if c.owner.left--; c.owner.left == 0 {
		close(c.owner.done)
	}
}

func (s *shelf) run(ctx context.Context) {
	defer close(s.ended)
	for s.next() {
		scouts := s.take(s.scout)
		if freed := s.try(ctx, scouts, lockFree); len(freed) > 0 {
			s.follow(ctx, freed)
			continue
		}
		if k, ok := s.nextTurn(); ok {
			s.try(ctx, s.take(func(c *shelved) bool { return slices.Contains(c.keys, k) }), lockPatiently)
		}
	}
}

// next drops the answered calls and waits for others. It returns false when the shelf is closed.
func (s *shelf) next() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		s.calls = slices.DeleteFunc(s.calls, func(c *shelved) bool { return c.state == answeredCall })
		if s.closed {
			return false
		}
		if len(s.calls) > 0 {
			return true
		}
		s.work.Wait()
	}
}

// take takes up to a batch of the calls that wait and that want accepts, oldest first, for a trial.
func (s *shelf) take(want func(*shelved) bool) []*shelved {
	s.mu.Lock()
	defer s.mu.Unlock()
	var taken []*shelved
	for _, c := range s.calls {
		if len(taken) == s.ledger.cfg.MaxBatch {
			break
		}
		if c.state == onShelf && want(c) {
			c.state = inTrial
			taken = append(taken, c)
		}
	}
	return taken
}

// scout accepts the first call of each locked balance. take calls it with mu held, in order.
func (s *shelf) scout(c *shelved) bool {
	for _, earlier := range s.calls {
		if earlier == c {
			return true
		}
		if earlier.state != answeredCall && slices.ContainsFunc(c.keys, func(k ledger.BalanceKey) bool { return slices.Contains(earlier.keys, k) }) {
			return false
		}
	}
	return false
}

// nextTurn returns the balance to be waited for now.
func (s *shelf) nextTurn() (ledger.BalanceKey, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var keys []ledger.BalanceKey
	for k, b := range s.locked {
		if b.calls > 0 {
			keys = append(keys, k)
		}
	}
	if len(keys) == 0 {
		return ledger.BalanceKey{}, false
	}
	slices.SortFunc(keys, ledger.CompareKeys)
	s.turn++
	return keys[s.turn%len(keys)], true
}

// follow tries the calls that wait for freed balances only, behind those that were tried first.
func (s *shelf) follow(ctx context.Context, freed keySet) {
	for {
		calls := s.take(func(c *shelved) bool {
			return !slices.ContainsFunc(c.keys, func(k ledger.BalanceKey) bool { return !freed.has(k) })
		})
		if len(calls) == 0 || len(s.try(ctx, calls, lockBriefly)) == 0 {
			return
		}
	}
}

// try runs calls as a batch, and puts those back whose balances are still locked. It returns the balances that were free.
func (s *shelf) try(ctx context.Context, calls []*shelved, how locking) (freed keySet) {
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
	held := map[*ledger.Call]heldCall{}
	for _, h := range s.ledger.runShelved(ctx, batch, how) {
		held[h.call] = h
	}
	freed = keySet{}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range calls {
		if h, again := held[c.call]; again {
			s.putBack(c, h)
			continue
		}
		if c.unknown && undecided(c.call.Err) {
			s.ledger.refuseAll([]*ledger.Call{c.call}, true, reasonUnknown, c.call.Err)
		}
		if c.call.Err == nil || !undecided(c.call.Err) {
			for _, k := range c.keys {
				freed[k] = struct{}{}
			}
		}
		s.release(c)
	}
	s.forget(freed)
	return freed
}

// putBack returns a call from a trial in which it was held again. The caller holds mu.
func (s *shelf) putBack(c *shelved, h heldCall) {
	c.unknown = c.unknown || h.unknown
	if len(h.keys) > 0 {
		for _, k := range c.keys {
			s.locked[k].calls--
		}
		c.keys = h.keys
		s.mark(c.keys, 1)
	} else {
		s.mark(c.keys, 0)
	}
	c.state = onShelf
	switch {
	case s.closed:
		s.refuse(c, reasonStopping, errStopping)
	case c.owner.over != "":
		s.refuse(c, c.owner.over, nil)
	}
}

// forget drops freed balances for which no call waits. The caller holds mu.
func (s *shelf) forget(freed keySet) {
	for k := range freed {
		if b := s.locked[k]; b != nil && b.calls == 0 {
			delete(s.locked, k)
			s.ledger.log.Info("a balance is no longer locked", "tenant", k.Tenant, "meter", k.Meter, "subject", k.Subject,
				"locked_seconds", time.Since(b.since).Seconds())
		}
	}
	s.inUse.Store(len(s.locked) > 0)
}

// undecided reports whether err is the refusal of an operation that was not decided.
func undecided(err error) bool {
	switch ledger.CodeOf(err) {
	case ledger.CodeUnavailable, ledger.CodeQueueFull, ledger.CodeInternal:
		return true
	default:
		return false
	}
}

// runShelved is runBatch on the shelf's goroutine: a panic fails the batch, as it does in a lane.
func (l *Ledger) runShelved(ctx context.Context, calls []*ledger.Call, how locking) (held []heldCall) {
	defer func() {
		if v := recover(); v != nil {
			l.log.Error("ledger batch panicked", "calls", len(calls), "panic", fmt.Sprint(v), "stack", string(debug.Stack()))
			l.refuseAll(calls, true, reasonUnknown, fmt.Errorf("panic: %v", v))
			held = nil
		}
	}()
	p := newPlan(calls)
	p.locking = how
	l.runGroups(ctx, p)
	return p.held
}
