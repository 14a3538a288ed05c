package gate

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/catalog"
	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/lab/testenv"
	"github.com/quotasvc/quotasvc/internal/ledger"
	"github.com/quotasvc/quotasvc/internal/ledger/pg"
)

// newTestLoader returns a loader with one slot. The function read replaces the ledger.
func newTestLoader(budget time.Duration, read func(context.Context, []ledger.CheckRequest) []pg.CheckOutcome) *loader {
	l := newLoader(&pg.Ledger{}, Config{LoadsMax: 1, LoadBudget: budget}, newGateMetrics(nil), func(*ledger.CheckResult) {})
	l.checkBatch = read
	return l
}

func TestLoader_EqualQuestions_AreReadOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		reads := 0
		l := newTestLoader(time.Second, func(_ context.Context, questions []ledger.CheckRequest) []pg.CheckOutcome {
			reads++
			return []pg.CheckOutcome{{Result: &ledger.CheckResult{}}}[:len(questions)]
		})
		for _, fresh := range []bool{false, true} {
			l.slots <- struct{}{} // take the only slot
			for range 100 {
				go func() {
					got, err := l.check(t.Context(), "acme", "", request("", "calls", 1).Items, fresh)
					assert.True(t, err == nil && got != nil, "got %+v, %v", got, err)
				}()
			}
			synctest.Wait()
			<-l.slots
			synctest.Wait()
		}
		assert.Equal(t, 2, reads, "twice 100 equal checks read postgresql %d times", reads)
	})
}

// Checks of many balances without copies must share few reads.
func TestLoader_OneSlot_ReadsAllThatWait(t *testing.T) {
	t.Parallel()
	in := newShared(t, func(c *Config) { c.LoadsMax = 1 }).catalogue()
	const tenants = 3 * loadBatchMax / 2
	for i := range tenants {
		in.putTenant(catalog.Tenant{ID: fmt.Sprint("t", i), Plan: "basic"})
	}
	in.loader.slots <- struct{}{}
	var all sync.WaitGroup
	for i := range tenants + 1 {
		all.Go(func() {
			req := forTenant(fmt.Sprint("t", i), request("", "calls", 1))
			switch got, err := in.Check(t.Context(), fromPostgres(req)); {
			case i == tenants:
				in.expectCode(errcode.TenantNotFound, "a tenant that does not exist is asked for with the others", err)
			case err != nil || !got.Allowed || got.Source != SourceLedger:
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
	testenv.Eventually(t, func() bool { return in.loader.waiting.Len() == tenants+1 }, "all checks wait")
	<-in.loader.slots
	all.Wait()
	most := uint64(2)
	if testenv.OnCitus() {
		most = 2 * 4 // on Citus a read is for one of the four shard groups
	}
	reads := in.reads()
	assert.True(t, reads >= 2 && reads <= most, "%d questions were %d reads, want 2 to %d", tenants+1, reads, most)
	assert.True(t, in.loader.waiting.Len() == 0 && len(in.loader.slots) == 0, "a question or a slot is left over")
}

// Checks wait for running reads and then share one read. They do not wait long for slow reads.
func TestLoader_ReadsUnderWay_ChecksWaitAndBecomeOne(t *testing.T) {
	testenv.NotOnCitus(t, "reads of different shard groups do not wait for each other")
	t.Parallel()
	in := newShared(t).catalogue()
	const tenants = loadBatchMax - 1
	for i := range tenants {
		in.putTenant(catalog.Tenant{ID: fmt.Sprint("t", i), Plan: "basic"})
	}
	for range promptLoads { // these slow reads do not end
		in.loader.slots <- struct{}{}
	}
	for range cap(in.loader.lateSlots) {
		in.loader.lateSlots <- struct{}{}
	}
	var all sync.WaitGroup
	for i := range tenants {
		all.Go(func() {
			got, err := in.Check(t.Context(), fromPostgres(forTenant(fmt.Sprint("t", i), request("", "calls", 1))))
			assert.True(t, err == nil && got.Allowed && got.Source == SourceLedger, "%+v, %v", got, err)
		})
	}
	testenv.Eventually(t, func() bool { return in.loader.waiting.Len() == tenants }, "all checks wait")
	<-in.loader.lateSlots
	all.Wait()
	assert.EqualValues(t, 1, in.reads(), "reads of %d questions", tenants)
	<-in.loader.slots
	assert.True(t, in.checks(fromPostgres(request("", "calls", 1))).Allowed) // begins its own read
}

// reads returns the number of reads of PostgreSQL that checks have begun.
func (in *instance) reads() uint64 {
	in.t.Helper()
	var m dto.Metric
	require.NoError(in.t, in.metrics.loadBatch.Write(&m))
	return m.GetHistogram().GetSampleCount()
}

// If a tenant's share of the queue is full, its next check is refused, with a Retry-After. Other tenants are served.
func TestLoader_TenantThatFillsItsShare_OthersAreServed(t *testing.T) {
	t.Parallel()
	in := newShared(t, func(c *Config) { c.LoadsMax = 1 }).catalogue()
	in.putTenant(catalog.Tenant{ID: "other", Plan: "basic"})
	in.loader.slots <- struct{}{}
	group := in.ledger.GroupOf("acme")
	for range loadQueueShare {
		q := &question{CheckRequest: ledger.CheckRequest{Tenant: "acme", Items: []ledger.Item{{Meter: "calls", Amount: 1}}}, done: make(chan struct{})}
		place, _ := in.loader.waiting.Add(q, "acme", group)
		require.NotNil(t, place, "there is no room for its share")
	}
	_, err := in.Check(t.Context(), fromPostgres(request("", "calls", 1)))
	in.expectCode(errcode.QueueFull, "the tenant's next check", err)
	e, ok := errors.AsType[*errcode.Error](err)
	assert.True(t, ok && e.RetryAfter > 0, "%v has no RetryAfter", err)
	served := make(chan error, 1)
	go func() {
		_, err := in.Check(t.Context(), fromPostgres(forTenant("other", request("", "calls", 1))))
		served <- err
	}()
	testenv.Eventually(t, func() bool { return in.loader.waiting.Len() == loadQueueShare+1 }, "the other tenant's check waits")
	<-in.loader.slots
	in.expectCode("", "the other tenant's check", <-served)
}

// A check that waits for its slot has less time for the read: both together have one budget.
func TestLoader_WaitAndRead_ShareOneBudget(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const budget = 2 * time.Second
		l := newTestLoader(budget, func(ctx context.Context, questions []ledger.CheckRequest) []pg.CheckOutcome {
			<-ctx.Done()
			return make([]pg.CheckOutcome, len(questions))
		})
		l.slots <- struct{}{}
		time.AfterFunc(budget-100*time.Millisecond, func() { <-l.slots })
		started := time.Now()
		_, err := l.check(t.Context(), "acme", "", request("", "calls", 1).Items, false)
		took := time.Since(started)
		assert.True(t, CodeOf(err) == errcode.Unavailable && took == budget, "%v after %s", err, took)
		time.Sleep(budget) // the read ends meanwhile
	})
}

// dueRefreshes returns the number of questions that the refresher must read.
func (in *instance) dueRefreshes() int {
	in.refresher.mu.Lock()
	defer in.refresher.mu.Unlock()
	return len(in.refresher.due)
}

// The refresher reads a balance in use in the background. No check waits for this read.
func TestRefresher_ReadsACopyBeforeItIsTooOld(t *testing.T) {
	t.Parallel()
	in, setAge := newWithCopy(t, testenv.Postgres(t), patientClient(testenv.Redis(t)))
	got, err := in.checkFrom(SourceCache, request("", "calls", 1))
	require.NoError(t, err, got)
	check := func() {
		t.Helper()
		got, err := in.Check(t.Context(), request("", "calls", 1))
		require.True(t, err == nil && got.Source == SourceCache && !got.Degraded, "%+v, %v; want the copy", got, err)
	}
	before := in.loads()
	setAge(in.policy.FreshFor * 3 / 4)
	check()
	assert.True(t, in.dueRefreshes() == 0 && in.loads() == before, "a young copy was read again")
	setAge(in.policy.FreshFor)
	for range cap(in.loader.slots) {
		in.loader.slots <- struct{}{}
	}
	for range 10 {
		check() // no slot is free, and the check does not wait for one
	}
	assert.True(t, in.dueRefreshes() == 1 && in.loads() == before, "one refresh is due")
	for range cap(in.loader.slots) {
		<-in.loader.slots
	}
	testenv.Eventually(t, func() bool { return in.loads() == before+1 && in.dueRefreshes() == 0 }, "the copy is read again, once")

	in.loader.awayUntil.Store(time.Now().Add(testenv.Patience).UnixNano())
	check() // the test's clock is stopped, so the new copy is ahead of it
	setAge(in.policy.FreshFor)
	check()
	assert.True(t, in.dueRefreshes() == 0 && in.loads() == before+1, "postgresql was asked while it is away")
}

func TestLoader_NoSlot_QueueFullOrDegraded(t *testing.T) {
	t.Parallel()
	in := newShared(t, func(c *Config) { c.LoadsMax = 1; c.LoadBudget = 20 * time.Millisecond }).catalogue()
	in.loader.slots <- struct{}{}
	_, err := in.Check(t.Context(), request("", "calls", 1))
	in.expectCode(errcode.QueueFull, "no slot and no copy", err)
	e, ok := errors.AsType[*errcode.Error](err)
	assert.True(t, ok && e.RetryAfter > 0, "%v has no RetryAfter", err)
	<-in.loader.slots
	in.loader.budget = testenv.Patience
	in.checks(request("", "calls", 1))
	in.loader.slots <- struct{}{}
	in.loader.budget = 20 * time.Millisecond
	got, err := in.Check(t.Context(), fromPostgres(request("", "calls", 1)))
	assert.True(t, err == nil && got.Degraded && got.Allowed, "no slot but a copy: %+v, %v; want it degraded", got, err)
	<-in.loader.slots
}

func TestLoader_CallerGone_OthersStillGetTheAnswer(t *testing.T) {
	t.Parallel()
	url := testenv.Postgres(t)
	in := newInstance(t, url, nil).catalogue()
	in.awaitAnnouncements(url)
	in.checks(fromPostgres(request("", "calls", 1))) // puts the tenant into memory
	table := lockRows(t, url, "LOCK TABLE balances IN ACCESS EXCLUSIVE MODE")
	ctx, cancel := context.WithCancel(t.Context())
	first, second := make(chan error, 1), make(chan error, 1)
	go func() {
		_, err := in.Check(ctx, fromPostgres(request("", "calls", 1)))
		first <- err
	}()
	table.awaitWaiter(1)
	go func() {
		got, err := in.Check(t.Context(), fromPostgres(request("", "calls", 1)))
		if err == nil && got.Degraded {
			err = errors.New("it was answered from a copy")
		}
		second <- err
	}()
	cancel()
	if err := <-first; err != nil { // the caller may also have received a copy in time
		in.expectCode(errcode.Unavailable, "the caller that has gone", err)
	}
	table.release()
	in.expectCode("", "the caller that stayed", <-second)
}
