package gate

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/quotasvc/quotasvc/internal/balances"
	"github.com/quotasvc/quotasvc/internal/ledger"
	"github.com/quotasvc/quotasvc/internal/ledger/pg"
)

const (
	// defaultLoadsMax bounds the concurrent reads of PostgreSQL for checks in this process. One read answers all checks that
	// wait, and eight reads leave most of the pool to other work.
	defaultLoadsMax = 8

	// loadBatchMax bounds the questions of one read. A read of 64 takes 4 ms: 15 times the throughput of reads of one.
	loadBatchMax = 64

	// defaultLoadBudget bounds a check's wait for a slot and its read together. A slower check is of no use.
	defaultLoadBudget = time.Second

	// loadPause is how long checks with a copy do not ask PostgreSQL after it failed to answer. Otherwise a hanging server
	// would cost each of them the budget.
	loadPause = time.Second

	// spareShare divides LoadsMax: a quarter of it bounds the concurrent reads of checks that have a copy to use instead. When
	// Redis loses all copies at once, these reads must not delay debits, nor checks without a copy.
	spareShare = 4

	// busyRetryAfter is the Retry-After of a check that got no slot.
	busyRetryAfter = time.Second
)

// errBusy means that no slot was free in time.
var errBusy = errors.New("too many checks wait for postgresql")

// loader reads balances from PostgreSQL for checks. Equal questions at the same time are read once. At most a fixed number of
// reads run at once, one per slot. A check that gets a slot reads the questions of all checks that wait.
type loader struct {
	ledger     *pg.Ledger
	slots      chan struct{}
	spareSlots chan struct{} // see spareShare
	budget     time.Duration
	flight     singleflight.Group
	metrics    *gateMetrics
	onResult   func(*ledger.CheckResult) // is called once per answer
	clock      func() time.Time          // for waits; nil: time.Now
	awayUntil  atomic.Int64              // unix nanoseconds: when to ask PostgreSQL again after a failure; 0: it answered last

	mu      sync.Mutex
	waiting []*question
}

// question waits for a slot, or is being read.
type question struct {
	ledger.CheckRequest

	until string // the key in flight, if nobody may share the answer once the read begins; else ""

	out  pg.CheckOutcome
	done chan struct{} // closed when out is set
}

func newLoader(l *pg.Ledger, cfg Config, metrics *gateMetrics, onResult func(*ledger.CheckResult)) *loader {
	return &loader{
		ledger: l, slots: make(chan struct{}, cfg.LoadsMax), spareSlots: make(chan struct{}, max(1, cfg.LoadsMax/spareShare)),
		budget: cfg.LoadBudget, metrics: metrics, onResult: onResult, clock: cfg.Now,
	}
}

// now returns the time that waits are measured by.
func (l *loader) now() time.Time {
	if l.clock != nil {
		return l.clock()
	}
	return time.Now()
}

// takeSpare reports whether it has taken one of the spare slots. The caller must return it with returnSpare.
func (l *loader) takeSpare() bool {
	select {
	case l.spareSlots <- struct{}{}:
		return true
	default:
		return false
	}
}

func (l *loader) returnSpare() { <-l.spareSlots }

// away reports whether PostgreSQL failed to answer less than loadPause ago.
func (l *loader) away() bool {
	until := l.awayUntil.Load()
	return until != 0 && l.now().UnixNano() < until
}

// check asks the ledger. Other callers may share the answer: nobody may change it. Errors are *ledger.Error.
// fresh: what the caller has been told before, also of its last debit, is part of the answer; so the read has not begun yet.
func (l *loader) check(ctx context.Context, tenant, subject string, items []ledger.Item, fresh bool) (*ledger.CheckResult, error) {
	key, shared := balances.QuestionKey(tenant, subject, items), ""
	if fresh {
		key += " fresh"
		shared = key
	}
	answer := l.flight.DoChan(key, func() (any, error) {
		// Other callers may wait for this answer, so it does not end when this caller's ctx does.
		q := &question{CheckRequest: ledger.CheckRequest{Tenant: tenant, Subject: subject, Items: items}, until: shared, done: make(chan struct{})}
		return l.ask(context.WithoutCancel(ctx), q)
	})
	select {
	case got := <-answer:
		if got.Err != nil {
			return nil, got.Err
		}
		return got.Val.(*ledger.CheckResult), nil
	case <-ctx.Done():
		return nil, unavailable("the caller went away or its deadline passed", context.Cause(ctx))
	}
}

// ask waits for the answer to q, at most for the budget. The check that reads it may be another one with a slot.
func (l *loader) ask(ctx context.Context, q *question) (*ledger.CheckResult, error) {
	within, cancel := context.WithTimeout(ctx, l.budget)
	defer cancel()
	l.mu.Lock()
	l.waiting = append(l.waiting, q)
	l.mu.Unlock()
	slots := l.slots
	for {
		select {
		case <-q.done:
			return q.out.Result, q.out.Err
		case slots <- struct{}{}:
			if batch := l.takeBatch(); len(batch) > 0 {
				go l.answerBatch(ctx, batch) // other checks may wait longer than q
			} else {
				<-l.slots
			}
			if !l.waits(q) {
				slots = nil // q is being read. Else a whole batch was ahead of it
			}
		case <-within.Done():
			if l.withdraw(q) {
				return nil, &ledger.Error{Code: ledger.CodeQueueFull, Detail: errBusy.Error(), RetryAfter: busyRetryAfter}
			}
			return nil, unavailable("postgresql did not answer in time", context.Cause(within))
		}
	}
}

// takeBatch removes the questions that have waited longest, at most loadBatchMax.
func (l *loader) takeBatch() []*question {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := min(len(l.waiting), loadBatchMax)
	batch := slices.Clone(l.waiting[:n])
	l.waiting = slices.Delete(l.waiting, 0, n)
	for _, q := range batch {
		if q.until != "" {
			l.flight.Forget(q.until)
		}
	}
	return batch
}

// answerBatch reads and answers a batch. The caller has taken a slot; answerBatch returns it.
func (l *loader) answerBatch(ctx context.Context, batch []*question) {
	questions := make([]ledger.CheckRequest, len(batch))
	for i, q := range batch {
		questions[i] = q.CheckRequest
	}
	outcomes := l.read(ctx, questions)
	<-l.slots
	for i, out := range outcomes {
		batch[i].out = out
		close(batch[i].done)
	}
}

// read asks the ledger within the budget, and passes the results to onResult. The caller has taken a slot.
func (l *loader) read(ctx context.Context, questions []ledger.CheckRequest) []pg.CheckOutcome {
	ctx, cancel := context.WithTimeout(ctx, l.budget)
	defer cancel()
	l.metrics.loadBatch.Observe(float64(len(questions)))
	outcomes := l.ledger.CheckBatch(ctx, questions)
	for _, out := range outcomes {
		switch {
		case out.Err == nil:
			l.awayUntil.Store(0)
			l.onResult(out.Result)
		case ledger.CodeOf(out.Err) == ledger.CodeUnavailable:
			l.awayUntil.Store(l.now().Add(loadPause).UnixNano())
		}
	}
	return outcomes
}

// refresh reads questions that no check waits for. It does nothing if no slot is free within the budget.
func (l *loader) refresh(ctx context.Context, questions []ledger.CheckRequest) {
	timeout := time.NewTimer(l.budget)
	defer timeout.Stop()
	select {
	case l.slots <- struct{}{}:
		l.read(ctx, questions)
		<-l.slots
	case <-timeout.C:
	}
}

// waits reports whether q is still in no batch.
func (l *loader) waits(q *question) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Contains(l.waiting, q)
}

// withdraw removes q from the waiting questions. It returns false if q is being read.
func (l *loader) withdraw(q *question) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := slices.Index(l.waiting, q)
	if at < 0 {
		return false
	}
	l.waiting = slices.Delete(l.waiting, at, at+1)
	return true
}
