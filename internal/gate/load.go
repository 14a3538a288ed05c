package gate

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/quotasvc/quotasvc/internal/ledger"
)

const (
	// DefaultLoadsMax is the reads of PostgreSQL that checks may have under way in this process. A read is well under 1 ms,
	// so eight are several thousand per second, and they leave most of the pool to everything else.
	DefaultLoadsMax = 8

	// DefaultLoadBudget bounds one such read, the wait for its turn included. A check that is slower than this has no use.
	DefaultLoadBudget = time.Second

	// loadPause is how long checks that have a copy to fall back on leave PostgreSQL alone after it did not answer. It keeps
	// a server that hangs from costing each of them the budget.
	loadPause = time.Second

	// refreshesPart is the part of the turns, a quarter, that go to checks which have a copy to fall back on, or one that is good but
	// growing old: when Redis loses all copies at once, reading them again must not take PostgreSQL from debits, nor the turns from checks without a copy.
	refreshesPart = 4

	// refreshPatience is how long such a check waits for PostgreSQL while Redis is away. A read is well under 1 ms; one that is
	// not is left to fill the copy for the next check.
	refreshPatience = 25 * time.Millisecond

	// busyRetryAfter is what a caller is told who found no turn.
	busyRetryAfter = time.Second
)

// errBusy says that no turn to read came up in time.
var errBusy = errors.New("reads of postgresql are at their bound")

// loader reads balances from PostgreSQL for checks: the same question at the same time is asked once, and at most a fixed
// number of questions are under way.
type loader struct {
	ledger *ledger.Ledger
	turns  chan struct{}
	spare  chan struct{} // turns of checks that have a copy to fall back on
	budget time.Duration
	flight singleflight.Group
	loaded func(*ledger.CheckResult) // called once per answer
	now    func() time.Time
	away   atomic.Int64 // unix nanoseconds: until then PostgreSQL is expected not to answer
}

func newLoader(l *ledger.Ledger, cfg Config, loaded func(*ledger.CheckResult)) *loader {
	return &loader{
		ledger: l, turns: make(chan struct{}, cfg.LoadsMax), spare: make(chan struct{}, max(1, cfg.LoadsMax/refreshesPart)),
		budget: cfg.LoadBudget, loaded: loaded, now: cfg.Now,
	}
}

// mayRefresh says whether a check that has a copy may ask, too. If so it must call refreshed when it has been answered.
func (l *loader) mayRefresh() bool {
	select {
	case l.spare <- struct{}{}:
		return true
	default:
		return false
	}
}

func (l *loader) refreshed() { <-l.spare }

// expectsAnswer says whether PostgreSQL has not failed to answer just now.
func (l *loader) expectsAnswer() bool { return l.now().UnixNano() >= l.away.Load() }

// refresh asks the ledger for what a check has a copy of that will not do for much longer, and does not wait for the answer. When
// no turn is free the next check tries again.
func (l *loader) refresh(ctx context.Context, tenant, subject string, items []ledger.Item) {
	if !l.expectsAnswer() || !l.mayRefresh() {
		return
	}
	items = slices.Clone(items) // the caller's may be used again
	go func() {                 // ends with the budget
		defer l.refreshed()
		_, _ = l.check(context.WithoutCancel(ctx), tenant, subject, items) // without an answer the copy grows old
	}()
}

// check asks the ledger. The answer may be shared with other callers: it must not be changed. Errors are *ledger.Error.
func (l *loader) check(ctx context.Context, tenant, subject string, items []ledger.Item) (*ledger.CheckResult, error) {
	answer := l.flight.DoChan(questionKey(tenant, subject, items), func() (any, error) {
		// The answer serves everybody who asks meanwhile: one who gives up must not take it from the others.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), l.budget)
		defer cancel()
		select {
		case l.turns <- struct{}{}:
		case <-ctx.Done():
			return nil, &ledger.Error{Code: ledger.CodeQueueFull, Detail: errBusy.Error(), RetryAfter: busyRetryAfter}
		}
		defer func() { <-l.turns }()
		result, err := l.ledger.Check(ctx, tenant, subject, items)
		switch {
		case err == nil:
			l.away.Store(0)
			l.loaded(result)
		case ledger.CodeOf(err) == ledger.CodeUnavailable:
			l.away.Store(l.now().Add(loadPause).UnixNano())
		}
		return result, err
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
