package lane

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"runtime/pprof"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"
)

// Config configures a lane.
type Config struct {
	// Name is the lane's name in metrics and logs. Lanes with the same name share their metrics.
	Name string

	// MaxQueue is the number of items that may wait, at least 1. Further items get ErrFull. If a caller gives up, its
	// item counts until the lane takes it from the queue.
	MaxQueue int

	// MaxBatch is the maximum weight of a batch, at least 1. An item that is heavier is processed alone.
	MaxBatch int

	// Metrics measures the queue's depth, the sizes of batches and the waits; nil measures nothing.
	Metrics *Metrics

	// Tracer creates a span for each batch that has a sampled request. The span has links to the sampled requests.
	// nil: there are no spans.
	Tracer trace.Tracer

	// Log gets an error record when process panics or returns a wrong number of answers; nil discards it.
	Log *slog.Logger

	// Now is the clock for the wait metric; nil means time.Now. It is not read without Metrics.
	Now func() time.Time
}

// Lane is a queue of items of type Q. The lane processes them in batches and returns an answer of type A for each
// item. New starts a lane, and Stop ends it.
type Lane[Q, A any] struct {
	cfg     Config
	weight  func(Q) int
	process func(ctx context.Context, batch []Q) []A
	pool    sync.Pool // of *ticket[Q, A]

	ctx    context.Context // passed to process; cancelled when Stop's deadline passes
	cancel context.CancelFunc
	ended  chan struct{} // closed when the lane's goroutine has ended

	batchItems, waitSeconds prometheus.Observer // nil without metrics

	mu       sync.Mutex
	work     sync.Cond // signalled when a ticket is queued or stopping becomes true
	ring     []*ticket[Q, A]
	head     int // index of the oldest ticket in ring
	depth    int // number of tickets in ring
	stopping bool
	batch    []*ticket[Q, A] // the current batch; the lane's goroutine writes it under mu, Stop may read it

	items []Q // the argument of process, reused; used by the lane's goroutine only
}

// New creates a lane and starts its goroutine. It panics if MaxQueue or MaxBatch is below 1.
//
// weight returns the weight of an item. It runs on the caller's goroutine. If weight is nil or its result is below 1,
// the weight is 1.
//
// process gets the items of a batch in order and returns one answer per item, in the same order. It must return in
// bounded time, and soon after ctx is cancelled. It must not keep the slice batch. The lane does not keep the slice
// that process returns.
func New[Q, A any](
	cfg Config, weight func(Q) int, process func(ctx context.Context, batch []Q) []A,
) *Lane[Q, A] {
	if cfg.MaxQueue < 1 || cfg.MaxBatch < 1 {
		panic(fmt.Sprintf("lane %q: MaxQueue %d and MaxBatch %d must be positive", cfg.Name, cfg.MaxQueue, cfg.MaxBatch))
	}
	cfg.Log = cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	l := &Lane[Q, A]{
		cfg:     cfg,
		weight:  weight,
		process: process,
		ended:   make(chan struct{}),
		ring:    make([]*ticket[Q, A], cfg.MaxQueue),
	}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	l.work.L = &l.mu
	l.pool.New = l.newTicket
	if m := cfg.Metrics; m != nil {
		l.batchItems, l.waitSeconds = m.batch.WithLabelValues(cfg.Name), m.wait.WithLabelValues(cfg.Name)
		m.track(l, cfg.Name)
	}
	go l.run()
	return l
}

func (l *Lane[Q, A]) newTicket() any { return &ticket[Q, A]{done: make(chan struct{}, 1)} }

// Depth returns the number of waiting items.
func (l *Lane[Q, A]) Depth() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.depth
}

// Do queues q and waits for its answer.
//
// Before q's batch starts, Do may return ErrFull (the queue is full), ErrStopped (the lane is stopping) or the error
// of ctx (q was dropped). Then nothing was done. After the batch has started, Do ignores ctx. It returns the answer,
// or ErrPanicked, ErrAnswers or ErrUnfinished. After these three errors the outcome is unknown.
func (l *Lane[Q, A]) Do(ctx context.Context, q Q) (A, error) {
	var none A
	if err := ctx.Err(); err != nil {
		return none, err
	}
	t, err := l.queue(l.spanOf(ctx), q)
	if err != nil {
		return none, err
	}
	if await(t, ctx.Done(), nil) == gone {
		return none, ctx.Err()
	}
	return l.collect(t)
}

// DoBy is like Do, but instead of ctx, the time `until` limits the wait in the queue. If q's batch has not started by
// then, DoBy drops q and returns ErrLate. It is cheaper than Do with a context that has this deadline. From ctx it
// takes only the span.
func (l *Lane[Q, A]) DoBy(ctx context.Context, until time.Time, q Q) (A, error) {
	spanOnly := context.Background()
	if l.cfg.Tracer != nil {
		spanOnly = context.WithoutCancel(ctx)
	}
	return l.DoWithin(spanOnly, until, q)
}

// DoWithin combines Do and DoBy: it drops q if its batch has not started when ctx ends, or at the time `until`.
func (l *Lane[Q, A]) DoWithin(ctx context.Context, until time.Time, q Q) (A, error) {
	var none A
	if err := ctx.Err(); err != nil {
		return none, err
	}
	wait := time.Until(until)
	if wait <= 0 {
		return none, ErrLate
	}
	t, err := l.queue(l.spanOf(ctx), q)
	if err != nil {
		return none, err
	}
	t.startTimer(wait)
	var away <-chan struct{}
	if c, ok := ctx.(interface {
		DoneBefore(time.Time) <-chan struct{}
	}); ok { // Done would create a timer, but the ticket already has a timer
		away = c.DoneBefore(until)
	} else {
		away = ctx.Done()
	}
	switch await(t, away, t.timer.C) {
	case gone:
		return none, ctx.Err()
	case late:
		return none, ErrLate
	default:
		t.timer.Stop()
		return l.collect(t)
	}
}

// startTimer makes t.timer fire after the time `wait`. If t has a timer from an earlier use, startTimer resets that
// timer.
func (t *ticket[Q, A]) startTimer(wait time.Duration) {
	if t.timer == nil {
		t.timer = time.NewTimer(wait)
	} else {
		t.timer.Reset(wait)
	}
}

// The ways in which the wait of a caller ends.
const (
	decided = iota // the ticket has an answer
	gone           // the caller gave up
	late           // the batch did not start in time
)

// await waits for t's answer. If the caller gives up or the timer `over` fires before t's batch has started, await
// abandons t. From then on the lane owns t.
func await[Q, A any](t *ticket[Q, A], away <-chan struct{}, over <-chan time.Time) (end int) {
	select {
	case <-t.done:
		return decided
	case <-away:
		end = gone
	case <-over:
		end = late
	}
	if t.state.CompareAndSwap(queued, abandoned) {
		return end
	}
	<-t.done // t's batch has started, or Stop is answering t
	return decided
}

// collect returns t's answer and recycles t.
func (l *Lane[Q, A]) collect(t *ticket[Q, A]) (A, error) {
	answer, err := t.answer, t.err
	if !t.shared {
		l.recycle(t)
	}
	return answer, err
}

// Stop refuses new items, finishes the queued items and ends the lane's goroutine. It may be called several times,
// even concurrently. Each call returns nil when the goroutine has ended.
//
// If ctx ends first, Stop answers the items of the current batch with ErrUnfinished and the queued items with
// ErrStopped. It cancels the context of process and returns an error that wraps the error of ctx. The goroutine ends
// when process returns.
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
	case <-l.ended: // both channels were ready: the work is done
		return nil
	default:
	}
	l.cutOff()
	return fmt.Errorf("lane %s: stop: %w", l.cfg.Name, ctx.Err())
}

// cutOff answers all queued items and the items of the current batch, and cancels the context of process.
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
	// Answer before the cancellation. Otherwise the answer to an item would depend on the speed of process.
	for _, t := range l.batch {
		t.disown(ErrUnfinished)
	}
	l.cancel()
}

// queue enqueues a ticket for q.
func (l *Lane[Q, A]) queue(asker trace.Span, q Q) (*ticket[Q, A], error) {
	t := l.pool.Get().(*ticket[Q, A])
	t.item, t.weight, t.asker = q, 1, asker
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
	t.item, t.answer, t.err = noItem, noAnswer, nil // so that the pool keeps no request in memory
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

// pop removes and returns the oldest ticket. The caller holds mu, and depth is above 0.
func (l *Lane[Q, A]) pop() *ticket[Q, A] {
	t := l.ring[l.head]
	l.ring[l.head] = nil
	l.head = (l.head + 1) % len(l.ring)
	l.depth--
	return t
}

// run is the lane's goroutine. Profiles show it with the label lane=<name>.
func (l *Lane[Q, A]) run() {
	pprof.SetGoroutineLabels(pprof.WithLabels(l.ctx, pprof.Labels("lane", l.cfg.Name)))
	clean := false
	defer func() {
		if !clean { // process has ended this goroutine (runtime.Goexit): continue on a new goroutine
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

// take waits for items and moves them from the queue to l.batch. It returns false if the lane is stopping and no item
// is left.
func (l *Lane[Q, A]) take() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	clear(l.batch) // answered tickets may already be in use for other items
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
			l.recycle(t) // its caller gave up
			continue
		}
		weight += t.weight
		l.batch = append(l.batch, t)
	}
}

// processBatch processes l.batch and answers every item, even if process panics or ends the goroutine.
func (l *Lane[Q, A]) processBatch() {
	for _, t := range l.batch {
		l.items = append(l.items, t.item)
	}
	if l.cfg.Metrics != nil {
		l.batchItems.Observe(float64(len(l.items)))
		now := l.cfg.Now()
		for _, t := range l.batch {
			l.waitSeconds.Observe(now.Sub(t.since).Seconds())
		}
	}
	answers, err := []A(nil), errExited
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
			answers, err = nil, l.panicked(v)
		}
	}()
	ctx, end := l.traced()
	defer end()
	answers = l.process(ctx, l.items)
	if len(answers) != len(l.items) {
		l.cfg.Log.Error("lane process returned a wrong number of answers", "lane", l.cfg.Name,
			"batch_items", len(l.items), "answers", len(answers))
		return nil, fmt.Errorf("%w: %d for %d items", ErrAnswers, len(answers), len(l.items))
	}
	return answers, nil
}

// errExited is the answer to the items of a batch whose process ended the goroutine.
var errExited error = &PanicError{Value: "goroutine exited"}

// panicked logs a panic of process and returns the error for the items of the batch.
func (l *Lane[Q, A]) panicked(v any) error {
	l.cfg.Log.Error("lane process panicked", "lane", l.cfg.Name, "batch_items", len(l.items),
		"panic", fmt.Sprint(v), "stack", string(debug.Stack()))
	return &PanicError{Value: v}
}
