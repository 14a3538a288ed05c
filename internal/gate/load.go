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
	// defaultLoadsMax is the largest number of concurrent reads of PostgreSQL for checks in this process. One read
	// answers all checks that wait. Eight reads leave most of the pool's connections to other work.
	defaultLoadsMax = 8

	// promptLoads is the number of reads that run at once before further checks wait and share a read. With more
	// reads at once, each read has fewer questions. With 128 callers, two reads had 13 to 26 questions each. They
	// used half as much of PostgreSQL as eight reads with 7 questions each.
	promptLoads = 2

	// lateAfter is how long a check waits for one of the promptLoads reads to end. Then the check may begin another
	// read. A read of a full batch takes a few milliseconds. A slower read waits for a lock, or meets a balance with
	// many due events. Other checks do not wait for such a read.
	lateAfter = 25 * time.Millisecond

	// loadBatchMax is the largest number of questions of one read. A read of 64 questions takes 4 ms, which gives 15
	// times the throughput of reads of one question.
	loadBatchMax = 64

	// loadShare is the largest number of questions of one tenant in a read while other tenants wait.
	loadShare = loadBatchMax / 4

	// loadQueueMax is the largest number of questions that wait: about as many as the loader can read within the
	// budget. loadQueueShare is the largest number of waiting questions of one tenant.
	loadQueueMax, loadQueueShare = 10_000, 2_500

	// defaultLoadBudget is the longest time of a check's wait for a slot together with its read. A slower check is of
	// no use.
	defaultLoadBudget = time.Second

	// loadPause is the time for which checks with a copy do not query PostgreSQL after it failed to answer.
	// Otherwise, if the server hangs, each such check would wait until its own budget ends.
	loadPause = time.Second

	// spareShare is a divisor: a quarter of LoadsMax is the largest number of concurrent reads for checks that could
	// use a copy instead. When Redis loses all copies at once, these reads must not delay debits, or checks without a
	// copy.
	spareShare = 4

	// busyRetryAfter is the Retry-After of a check that got no slot.
	busyRetryAfter = time.Second
)

// busy returns the refusal of a check that would have to wait too long: no slot was free in time, or too many checks
// wait already.
func busy() error {
	return &errcode.Error{Code: errcode.QueueFull, Detail: "too many checks wait for postgresql", RetryAfter: busyRetryAfter}
}

// loader reads balances from PostgreSQL for checks. Concurrent equal questions are read once. The number of reads at
// a time is bounded: each read needs a slot. A check that gets a slot reads the questions of all checks that wait.
// While few reads run, a check begins its own read at once.
type loader struct {
	checkBatch func(context.Context, []ledger.CheckRequest) []pg.CheckOutcome // checks of the ledger
	groupOf    func(tenant string) int
	slots      chan struct{} // see promptLoads
	lateSlots  chan struct{} // more slots, for checks that have waited for lateAfter, or if a whole batch waits
	spareSlots chan struct{} // see spareShare
	budget     time.Duration
	flight     singleflight.Group
	metrics    *gateMetrics
	onResult   func(*ledger.CheckResult) // is called with each answer
	now        func() time.Time          // clock for waits
	awayUntil  atomic.Int64              // unix nanoseconds: when to query PostgreSQL again; 0: it answered the last query
	waiting    *waitlist.List[*question]
}

// question is a question that waits for a slot, or is being read.
type question struct {
	ledger.CheckRequest

	until string // key in flight, if callers must not share the answer after the read begins; else ""

	out  pg.CheckOutcome
	done chan struct{} // closed when out is set
}

func newLoader(l *pg.Ledger, cfg Config, metrics *gateMetrics, onResult func(*ledger.CheckResult)) *loader {
	prompt := min(promptLoads, cfg.LoadsMax)
	if l.Cluster() != nil { // reads of different shard groups do not become cheaper by waiting for each other
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

// check queries the ledger. Callers may share the answer, so they must not change it. Errors are *errcode.Error. If
// fresh is set, the answer must include all changes that the caller knows, such as its last debit. So the caller
// shares a read with other callers only if the read has not begun yet.
func (l *loader) check(ctx context.Context, tenant, subject string, items []ledger.Item, fresh bool) (*ledger.CheckResult, error) {
	request := ledger.CheckRequest{Tenant: tenant, Subject: subject, Items: items}
	key, shared := balances.QuestionKey(tenant, subject, items), ""
	if fresh {
		key += " fresh"
		shared = key
	}
	answer := l.flight.DoChan(key, func() (any, error) {
		// Other callers may wait for this answer, so the query does not end when this caller's ctx ends.
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
			go l.answerBatch(ctx, slot, batch) // the batch may take longer than q waits
		} else {
			<-slot
		}
		if !place.Waits() {
			slots, late = nil, nil // q is being read; otherwise it waits behind a full batch
		}
	}
}

// takeBatch takes the next questions from the queue. For questions with until set, later callers must not share the
// answer, so takeBatch removes their keys from flight.
func (l *loader) takeBatch() []*waitlist.Place[*question] {
	batch := l.waiting.Take()
	for _, p := range batch {
		if p.Value.until != "" {
			l.flight.Forget(p.Value.until)
		}
	}
	return batch
}

// answerBatch reads and answers a batch. The caller has taken the slot, and answerBatch returns it.
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

// refresh reads questions for which no check waits. If no slot is free within the budget, it reads nothing.
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
