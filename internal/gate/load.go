package gate

import (
	"context"
	"sync/atomic"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/quotasvc/quotasvc/internal/gate/balances"
	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/kit/waitlist"
	"github.com/quotasvc/quotasvc/internal/ledger"
	"github.com/quotasvc/quotasvc/internal/ledger/pg"
)

const (
	// defaultLoadsMax bounds the concurrent reads of PostgreSQL for checks in this process. One read answers all checks
	// that wait, and eight reads leave most of the pool to other work.
	defaultLoadsMax = 8

	// promptLoads is how many reads run at once before checks wait for each other. With more reads at once, each read
	// has fewer questions. With 128 callers, two reads had 13 to 26 questions each. They used half as much of
	// PostgreSQL as eight reads with 7 questions each.
	promptLoads = 2

	// lateAfter is how long a check waits for these reads before it may begin another read. A read of a full batch
	// takes a few milliseconds. A slower read waits for a lock, or meets a balance with many due events: other checks
	// do not wait for such a read.
	lateAfter = 25 * time.Millisecond

	// loadBatchMax bounds the questions of one read. A read of 64 questions takes 4 ms: 15 times the throughput of
	// reads of one question.
	loadBatchMax = 64

	// loadShare bounds the questions of one tenant in a read while other tenants wait.
	loadShare = loadBatchMax / 4

	// loadQueueMax bounds the questions that wait: about as many as are read within the budget. loadQueueShare bounds
	// the waiting questions of one tenant.
	loadQueueMax, loadQueueShare = 10_000, 2_500

	// defaultLoadBudget bounds a check's wait for a slot and its read together. A slower check is of no use.
	defaultLoadBudget = time.Second

	// loadPause is how long checks with a copy do not query PostgreSQL after it failed to answer. Otherwise each such
	// check would wait for a hanging server until its budget ends.
	loadPause = time.Second

	// spareShare is the divisor of LoadsMax: a quarter of LoadsMax bounds the concurrent reads of checks that could
	// use a copy instead. When Redis loses all copies at once, these reads must not delay debits, nor checks without
	// a copy.
	spareShare = 4

	// busyRetryAfter is the Retry-After of a check that got no slot.
	busyRetryAfter = time.Second
)

// busy refuses a check that would have to wait too long: no slot was free in time, or too many wait already.
func busy() error {
	return &errcode.Error{Code: errcode.QueueFull, Detail: "too many checks wait for postgresql", RetryAfter: busyRetryAfter}
}

// loader reads balances from PostgreSQL for checks. Concurrent equal questions are read once. At most a fixed number
// of reads run at once, one per slot. A check that gets a slot reads the questions of all checks that wait. While few
// reads run, a check begins its own read at once.
type loader struct {
	checkBatch func(context.Context, []ledger.CheckRequest) []pg.CheckOutcome // the ledger's
	groupOf    func(tenant string) int
	slots      chan struct{} // see promptLoads
	lateSlots  chan struct{} // the other slots: for checks that have waited for lateAfter, or when a whole batch waits
	spareSlots chan struct{} // see spareShare
	budget     time.Duration
	flight     singleflight.Group
	metrics    *gateMetrics
	onResult   func(*ledger.CheckResult) // is called once per answer
	now        func() time.Time          // for waits
	awayUntil  atomic.Int64              // unix nanoseconds: when to query PostgreSQL again; 0: it answered the last query
	waiting    *waitlist.List[*question]
}

// question waits for a slot, or is being read.
type question struct {
	ledger.CheckRequest

	until string // the key in flight, if callers may not share the answer once the read begins; else ""

	out  pg.CheckOutcome
	done chan struct{} // closed when out is set
}

func newLoader(l *pg.Ledger, cfg Config, metrics *gateMetrics, onResult func(*ledger.CheckResult)) *loader {
	prompt := min(promptLoads, cfg.LoadsMax)
	if l.Cluster() != nil { // reads of different shard groups do not gain from waiting for each other
		prompt = cfg.LoadsMax
	}
	now := cfg.Now
	if now == nil {
		now = time.Now
	}
	return &loader{
		checkBatch: l.CheckBatch, groupOf: l.GroupOf, slots: make(chan struct{}, prompt), lateSlots: make(chan struct{}, cfg.LoadsMax-prompt),
		spareSlots: make(chan struct{}, max(1, cfg.LoadsMax/spareShare)),
		budget:     cfg.LoadBudget, metrics: metrics, onResult: onResult, now: now,
		waiting: waitlist.New[*question](waitlist.Config{Most: loadQueueMax, MostOf: loadQueueShare, Batch: loadBatchMax, Share: loadShare}),
	}
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

// check queries the ledger. Callers may share the answer, so they must not change it. Errors are *errcode.Error. With
// fresh, the answer includes everything that the caller has received before, such as the result of its last debit. So
// the caller shares only a read that has not begun yet.
func (l *loader) check(ctx context.Context, tenant, subject string, items []ledger.Item, fresh bool) (*ledger.CheckResult, error) {
	request := ledger.CheckRequest{Tenant: tenant, Subject: subject, Items: items}
	key, shared := balances.QuestionKey(tenant, subject, items), ""
	if fresh {
		key += " fresh"
		shared = key
	}
	answer := l.flight.DoChan(key, func() (any, error) {
		// Other callers may wait for this answer, so it does not end when this caller's ctx ends.
		return l.ask(context.WithoutCancel(ctx), &question{CheckRequest: request, until: shared, done: make(chan struct{})})
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

// ask waits for the answer to q, at most for the budget. Another check that has a slot may read q.
func (l *loader) ask(ctx context.Context, q *question) (*ledger.CheckResult, error) {
	place, crowded := l.waiting.Add(q, q.Tenant, l.groupOf(q.Tenant))
	if place == nil {
		return nil, busy()
	}
	slots, late := l.slots, chan struct{}(nil)
	if crowded {
		late = l.lateSlots
	}
	patience := min(lateAfter, l.budget)
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for {
		var slot chan struct{}
		select {
		case <-q.done:
			return q.out.Result, q.out.Err
		case slots <- struct{}{}:
			slot = slots
		case late <- struct{}{}:
			slot = late
		case <-timer.C:
			if patience < l.budget {
				if slots != nil {
					late = l.lateSlots
				}
				patience = l.budget
				timer.Reset(l.budget - lateAfter)
				continue
			}
			if place.Remove() {
				return nil, busy()
			}
			return nil, unavailable("postgresql did not answer in time", context.DeadlineExceeded)
		}
		if batch := l.takeBatch(); len(batch) > 0 {
			go l.answerBatch(ctx, slot, batch) // other checks may wait longer than q
		} else {
			<-slot
		}
		if !place.Waits() {
			slots, late = nil, nil // q is being read. Else a whole batch was ahead of it
		}
	}
}

// takeBatch takes the next questions. From now on, further callers may not share the answers to some of these
// questions.
func (l *loader) takeBatch() []*waitlist.Place[*question] {
	batch := l.waiting.Take()
	for _, p := range batch {
		if p.Value.until != "" {
			l.flight.Forget(p.Value.until)
		}
	}
	return batch
}

// answerBatch reads and answers a batch. The caller has taken a slot; answerBatch returns it.
func (l *loader) answerBatch(ctx context.Context, slot chan struct{}, batch []*waitlist.Place[*question]) {
	questions := make([]ledger.CheckRequest, len(batch))
	for i, p := range batch {
		questions[i] = p.Value.CheckRequest
	}
	outcomes := l.read(ctx, questions)
	<-slot
	for i, out := range outcomes {
		batch[i].Value.out = out
		close(batch[i].Value.done)
	}
}

// read queries the ledger within the budget, and passes the results to onResult. The caller has taken a slot.
func (l *loader) read(ctx context.Context, questions []ledger.CheckRequest) []pg.CheckOutcome {
	ctx, cancel := context.WithTimeout(ctx, l.budget)
	defer cancel()
	l.metrics.loadBatch.Observe(float64(len(questions)))
	outcomes := l.checkBatch(ctx, questions)
	for _, out := range outcomes {
		switch {
		case out.Err == nil:
			l.awayUntil.Store(0)
			l.onResult(out.Result)
		case errcode.Of(out.Err) == errcode.Unavailable:
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
