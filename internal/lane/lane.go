package lane

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"
)

// Config says how a lane behaves.
type Config struct {
	// Name is the lane's name in metrics and logs. Lanes may share a name; their metrics are then reported as one.
	Name string

	// MaxQueue is the number of items that may wait, at least 1. More are refused with ErrFull. An item whose caller has
	// gone keeps its place until the lane comes to it.
	MaxQueue int

	// MaxBatch is the total weight that is processed at once, at least 1. A heavier item is processed alone.
	MaxBatch int

	// Metrics, if not nil, measure depth, batch size and wait.
	Metrics *Metrics

	// Log receives panics and broken contracts of process; nil discards them.
	Log *slog.Logger

	// Now is the clock of the wait metric; nil is time.Now. It is not read without Metrics.
	Now func() time.Time
}

// Lane is a queue of Q, processed in batches into A. Make one with New and end it with Stop.
type Lane[Q, A any] struct {
	cfg     Config
	weight  func(Q) int
	process func(ctx context.Context, batch []Q) []A
	pool    sync.Pool // of *ticket[Q, A]

	ctx    context.Context // of process: cancelled when Stop's deadline passes
	cancel context.CancelFunc
	ended  chan struct{} // closed when the lane's goroutine is gone

	// observe and observeWait are no-ops without metrics.
	observe     func(batch int)
	observeWait func(since, now time.Time)

	mu       sync.Mutex
	work     sync.Cond // there is something to take, or stopping became true
	ring     []*ticket[Q, A]
	head     int // index of the oldest ticket in ring
	depth    int // tickets in ring
	stopping bool
	batch    []*ticket[Q, A] // in process; written by the lane's goroutine under mu, cut off by Stop

	items []Q // process's argument, reused: the lane's goroutine only
}

// New makes a lane and starts its goroutine. It panics if cfg's bounds are not positive.
//
// weight says what an item counts for in a batch; nil, or a result below 1, counts as 1. It runs on the caller's goroutine.
//
// process gets the items of a batch in order and returns as many answers, in the same order. It must return in bounded
// time, soon after ctx is cancelled, and must not keep the slice it is given. The lane does not keep the slice it returns.
func New[Q, A any](
	cfg Config, weight func(Q) int, process func(ctx context.Context, batch []Q) []A,
) *Lane[Q, A] {
	if cfg.MaxQueue < 1 || cfg.MaxBatch < 1 {
		panic(fmt.Sprintf("lane %q: MaxQueue %d and MaxBatch %d must be positive", cfg.Name, cfg.MaxQueue, cfg.MaxBatch))
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	l := &Lane[Q, A]{
		cfg:         cfg,
		weight:      weight,
		process:     process,
		ended:       make(chan struct{}),
		ring:        make([]*ticket[Q, A], cfg.MaxQueue),
		observe:     func(int) {},
		observeWait: func(_, _ time.Time) {},
	}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	l.work.L = &l.mu
	l.pool.New = func() any { return &ticket[Q, A]{done: make(chan struct{}, 1)} }
	if m := cfg.Metrics; m != nil {
		batch, wait := m.batch.WithLabelValues(cfg.Name), m.wait.WithLabelValues(cfg.Name)
		l.observe = func(n int) { batch.Observe(float64(n)) }
		l.observeWait = func(since, now time.Time) { wait.Observe(now.Sub(since).Seconds()) }
		m.track(l, cfg.Name)
	}
	go l.run()
	return l
}

// Depth is the number of items waiting.
func (l *Lane[Q, A]) Depth() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.depth
}

// Do queues q and waits for its answer.
//
// It returns ErrFull at once if the queue is full and ErrStopped if the lane is stopping: nothing was done. It returns
// ctx's error only if q was dropped before its batch started: nothing was done. Once the batch has started ctx no longer
// matters, and Do returns the answer, or ErrPanicked, ErrAnswers or ErrUnfinished, after which the outcome is unknown.
func (l *Lane[Q, A]) Do(ctx context.Context, q Q) (A, error) {
	var none A
	if err := ctx.Err(); err != nil {
		return none, err
	}
	t, err := l.queue(q)
	if err != nil {
		return none, err
	}
	if !await(t, ctx.Done()) {
		return none, ctx.Err()
	}
	return l.collect(t)
}

// DoBy is Do for callers whose patience with the queue is short: q is dropped if its batch has not started by until, and DoBy
// returns ErrLate. It costs less than Do with a context of that deadline.
func (l *Lane[Q, A]) DoBy(until time.Time, q Q) (A, error) {
	var none A
	patience := time.Until(until)
	if patience <= 0 {
		return none, ErrLate
	}
	t, err := l.queue(q)
	if err != nil {
		return none, err
	}
	if t.timer == nil {
		t.timer = time.NewTimer(patience)
	} else {
		t.timer.Reset(patience)
	}
	if !await(t, t.timer.C) {
		return none, ErrLate
	}
	t.timer.Stop()
	return l.collect(t)
}

// await waits for t's answer. It reports false if gone was first and t's batch had not started: t is the lane's then.
func await[Q, A, G any](t *ticket[Q, A], gone <-chan G) bool {
	select {
	case <-t.done:
	case <-gone:
		if t.state.CompareAndSwap(queued, abandoned) {
			return false
		}
		<-t.done // its batch has started, or Stop is answering it
	}
	return true
}

// collect takes the answer from t.
func (l *Lane[Q, A]) collect(t *ticket[Q, A]) (A, error) {
	answer, err := t.answer, t.err
	if !t.shared {
		l.recycle(t)
	}
	return answer, err
}

// Stop refuses new items, finishes the queued ones and ends the lane's goroutine. It may be called more than once, also at
// the same time; each call returns nil once the goroutine has ended.
//
// If ctx ends first, Stop answers what is left (ErrStopped, or ErrUnfinished for the batch in process), cancels the context
// of process and returns ctx's error. The goroutine then ends when process returns.
func (l *Lane[Q, A]) Stop(ctx context.Context) error {
	l.mu.Lock()
	l.stopping = true
	l.work.Signal()
	l.mu.Unlock()

	select {
	case <-l.ended:
		return nil
	case <-ctx.Done():
	}
	select {
	case <-l.ended: // both were ready: the work is done
		return nil
	default:
	}
	l.cutOff()
	return fmt.Errorf("lane %s: stop: %w", l.cfg.Name, ctx.Err())
}

// cutOff answers everything that is queued or in process.
func (l *Lane[Q, A]) cutOff() {
	l.mu.Lock()
	defer l.mu.Unlock()
	var none A
	for l.depth > 0 {
		t := l.pop()
		if !t.state.CompareAndSwap(queued, taken) {
			l.recycle(t)
			continue
		}
		t.give(none, ErrStopped)
	}
	// Before the cancellation, so that no answer depends on how fast process notices it.
	for _, t := range l.batch {
		t.disown(ErrUnfinished)
	}
	l.cancel()
}

// queue makes a ticket for q and enqueues it.
func (l *Lane[Q, A]) queue(q Q) (*ticket[Q, A], error) {
	t := l.pool.Get().(*ticket[Q, A])
	t.item, t.weight = q, 1
	if l.weight != nil {
		t.weight = max(1, l.weight(q))
	}
	t.state.Store(queued)
	if l.cfg.Metrics != nil {
		t.since = l.cfg.Now()
	}
	if err := l.enqueue(t); err != nil {
		l.recycle(t)
		return nil, err
	}
	return t, nil
}

func (l *Lane[Q, A]) recycle(t *ticket[Q, A]) {
	var (
		noItem   Q
		noAnswer A
	)
	t.item, t.answer, t.err = noItem, noAnswer, nil // the pool must not keep a request alive
	l.pool.Put(t)
}

func (l *Lane[Q, A]) enqueue(t *ticket[Q, A]) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stopping {
		return ErrStopped
	}
	if l.depth == len(l.ring) {
		return ErrFull
	}
	l.ring[(l.head+l.depth)%len(l.ring)] = t
	l.depth++
	if l.depth == 1 {
		l.work.Signal()
	}
	return nil
}

// pop removes the oldest ticket. It needs mu and depth > 0.
func (l *Lane[Q, A]) pop() *ticket[Q, A] {
	t := l.ring[l.head]
	l.ring[l.head] = nil
	l.head = (l.head + 1) % len(l.ring)
	l.depth--
	return t
}

// run is the lane's goroutine.
func (l *Lane[Q, A]) run() {
	clean := false
	defer func() {
		if !clean { // process ended this goroutine (runtime.Goexit): the lane lives on
			go l.run()
			return
		}
		l.cancel()
		if l.cfg.Metrics != nil {
			l.cfg.Metrics.untrack(l)
		}
		close(l.ended)
	}()
	for l.take() {
		l.processBatch()
	}
	clean = true
}

// take waits for work and moves it from the queue to l.batch and l.items. It reports false when the lane has stopped and
// nothing is left.
func (l *Lane[Q, A]) take() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	clear(l.batch) // answered tickets may be in use again
	l.batch = l.batch[:0]
	weight := 0
	for {
		for l.depth == 0 && len(l.batch) == 0 && !l.stopping {
			l.work.Wait()
		}
		if l.depth == 0 {
			return len(l.batch) > 0
		}
		if next := l.ring[l.head]; len(l.batch) > 0 && next.weight > l.cfg.MaxBatch-weight {
			return true
		}
		t := l.pop()
		if !t.state.CompareAndSwap(queued, taken) {
			l.recycle(t) // its caller has gone
			continue
		}
		weight += t.weight
		l.batch = append(l.batch, t)
	}
}

// processBatch processes l.batch and answers its items, whatever process does.
func (l *Lane[Q, A]) processBatch() {
	for _, t := range l.batch {
		l.items = append(l.items, t.item)
	}
	l.observe(len(l.items))
	if l.cfg.Metrics != nil {
		now := l.cfg.Now()
		for _, t := range l.batch {
			l.observeWait(t.since, now)
		}
	}
	answers, err := []A(nil), error(&PanicError{Value: "goroutine exited"})
	defer func() {
		clear(l.items)
		l.items = l.items[:0]
		var answer A
		for i, t := range l.batch {
			if err == nil {
				answer = answers[i]
			}
			t.give(answer, err)
		}
	}()
	answers, err = l.callProcess()
}

func (l *Lane[Q, A]) callProcess() (answers []A, err error) {
	defer func() {
		if v := recover(); v != nil {
			l.cfg.Log.Error("lane process panicked", "lane", l.cfg.Name, "batch_items", len(l.items),
				"panic", fmt.Sprint(v), "stack", string(debug.Stack()))
			answers, err = nil, &PanicError{Value: v}
		}
	}()
	answers = l.process(l.ctx, l.items)
	if len(answers) != len(l.items) {
		l.cfg.Log.Error("lane process returned a wrong number of answers", "lane", l.cfg.Name,
			"batch_items", len(l.items), "answers", len(answers))
		return nil, fmt.Errorf("%w: %d for %d items", ErrAnswers, len(answers), len(l.items))
	}
	return answers, nil
}
