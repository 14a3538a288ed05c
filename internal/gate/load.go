package gate

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/quotasvc/quotasvc/internal/ledger"
	"github.com/quotasvc/quotasvc/internal/ledger/pg"
)

const (
	// DefaultLoadsMax is the reads of PostgreSQL that checks may have under way in this process. Each answers all who wait, and
	// eight leave most of the pool to everything else.
	DefaultLoadsMax = 8

	// loadBatchMax is the questions of one read. 64 take 4 ms, and 15 times as many are answered per second as one by one.
	loadBatchMax = 64

	// DefaultLoadBudget bounds what a check waits for one such read, the wait for its turn included. A check that is slower than this has no use.
	DefaultLoadBudget = time.Second

	// loadPause is how long checks that have a copy to fall back on leave PostgreSQL alone after it did not answer. It keeps
	// a server that hangs from costing each of them the budget.
	loadPause = time.Second

	// refreshesPart is the part of the turns, a quarter, that go to checks which have a copy to fall back on: when Redis loses all
	// copies at once, reading them again must not take PostgreSQL from debits, nor the turns from checks without a copy.
	refreshesPart = 4

	// busyRetryAfter is what a caller is told who found no turn.
	busyRetryAfter = time.Second
)

// errBusy says that no turn to read came up in time.
var errBusy = errors.New("reads of postgresql are at their bound")

// loader reads balances from PostgreSQL for checks: the same question at the same time is asked once, at most a fixed number of
// reads are under way, and whoever gets a turn asks for all who wait for one.
type loader struct {
	ledger    *pg.Ledger
	turns     chan struct{}
	spare     chan struct{} // turns of checks that have a copy to fall back on
	budget    time.Duration
	flight    singleflight.Group
	metrics   *gateMetrics
	loaded    func(*ledger.CheckResult) // called once per answer
	now       func() time.Time
	awayUntil atomic.Int64 // unix nanoseconds: when to expect answers of PostgreSQL again; 0: now

	mu      sync.Mutex
	waiting []*question
}

// question is one that waits for a turn, or is being read.
type question struct {
	ledger.CheckRequest

	out  pg.CheckOutcome
	done chan struct{} // closed when out is there
}

func newLoader(l *pg.Ledger, cfg Config, metrics *gateMetrics, loaded func(*ledger.CheckResult)) *loader {
	return &loader{
		ledger: l, turns: make(chan struct{}, cfg.LoadsMax), spare: make(chan struct{}, max(1, cfg.LoadsMax/refreshesPart)),
		budget: cfg.LoadBudget, metrics: metrics, loaded: loaded, now: cfg.Now,
	}
}

// takeSpare takes one of the slots for checks that have a copy to fall back on, and reports whether one was free. The caller
// must give it back with returnSpare.
func (l *loader) takeSpare() bool {
	select {
	case l.spare <- struct{}{}:
		return true
	default:
		return false
	}
}

func (l *loader) returnSpare() { <-l.spare }

// away reports whether PostgreSQL failed to answer less than loadPause ago.
func (l *loader) away() bool {
	until := l.awayUntil.Load()
	return until != 0 && l.now().UnixNano() < until
}

// check asks the ledger. The answer may be shared with other callers: it must not be changed. Errors are *ledger.Error.
func (l *loader) check(ctx context.Context, tenant, subject string, items []ledger.Item) (*ledger.CheckResult, error) {
	answer := l.flight.DoChan(questionKey(tenant, subject, items), func() (any, error) {
		// The answer serves everybody who asks meanwhile: one who gives up must not take it from the others.
		q := &question{CheckRequest: ledger.CheckRequest{Tenant: tenant, Subject: subject, Items: items}, done: make(chan struct{})}
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

// ask waits within the budget for the answer to q: from whoever has a turn, or by a turn of its own.
func (l *loader) ask(ctx context.Context, q *question) (*ledger.CheckResult, error) {
	within, cancel := context.WithTimeout(ctx, l.budget)
	defer cancel()
	l.mu.Lock()
	l.waiting = append(l.waiting, q)
	l.mu.Unlock()
	turns := l.turns
	for {
		select {
		case <-q.done:
			return q.out.Result, q.out.Err
		case turns <- struct{}{}:
			if batch := l.take(); len(batch) > 0 {
				go l.answer(ctx, batch) // others' answers may come when q has no more time
			} else {
				<-l.turns
			}
			if !l.waits(q) {
				turns = nil // else more than a batch were before it
			}
		case <-within.Done():
			if l.withdraw(q) {
				return nil, &ledger.Error{Code: ledger.CodeQueueFull, Detail: errBusy.Error(), RetryAfter: busyRetryAfter}
			}
			return nil, unavailable("postgresql did not answer in time", context.Cause(within))
		}
	}
}

// take takes those who have waited longest.
func (l *loader) take() []*question {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := min(len(l.waiting), loadBatchMax)
	batch := slices.Clone(l.waiting[:n])
	l.waiting = slices.Delete(l.waiting, 0, n)
	return batch
}

// answer answers a batch. It needs a turn, and gives it back.
func (l *loader) answer(ctx context.Context, batch []*question) {
	questions := make([]ledger.CheckRequest, len(batch))
	for i, q := range batch {
		questions[i] = q.CheckRequest
	}
	outcomes := l.read(ctx, questions)
	<-l.turns
	for i, out := range outcomes {
		batch[i].out = out
		close(batch[i].done)
	}
}

// read asks the ledger, and hands on what it says. It needs a turn.
func (l *loader) read(ctx context.Context, questions []ledger.CheckRequest) []pg.CheckOutcome {
	ctx, cancel := context.WithTimeout(ctx, l.budget)
	defer cancel()
	l.metrics.loadBatch.Observe(float64(len(questions)))
	outcomes := l.ledger.CheckBatch(ctx, questions)
	for _, out := range outcomes {
		switch {
		case out.Err == nil:
			l.awayUntil.Store(0)
			l.loaded(out.Result)
		case ledger.CodeOf(out.Err) == ledger.CodeUnavailable:
			l.awayUntil.Store(l.now().Add(loadPause).UnixNano())
		}
	}
	return outcomes
}

// readAhead reads what nobody waits for, if a turn comes up within the budget.
func (l *loader) readAhead(ctx context.Context, questions []ledger.CheckRequest) {
	patience := time.NewTimer(l.budget)
	defer patience.Stop()
	select {
	case l.turns <- struct{}{}:
		l.read(ctx, questions)
		<-l.turns
	case <-patience.C:
	}
}

// waits reports whether nobody has taken q.
func (l *loader) waits(q *question) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Contains(l.waiting, q)
}

// withdraw takes q from those who wait. It reports false if it is being read.
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

// questionKey tells questions apart. Every text is preceded by its length, so no choice of ids makes two questions one.
func questionKey(tenant, subject string, items []ledger.Item) string {
	key := make([]byte, 0, 128)
	text := func(s string) {
		key = strconv.AppendInt(key, int64(len(s)), 10)
		key = append(key, ':')
		key = append(key, s...)
	}
	text(tenant)
	text(subject)
	for i := range items {
		text(items[i].Meter)
		key = strconv.AppendInt(key, items[i].Amount, 10)
	}
	return string(key)
}
