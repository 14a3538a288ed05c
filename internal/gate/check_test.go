package gate

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"

	"github.com/quotasvc/quotasvc/internal/balances"
	"github.com/quotasvc/quotasvc/internal/catalog"
	"github.com/quotasvc/quotasvc/internal/ledger"
	"github.com/quotasvc/quotasvc/internal/period"
	"github.com/quotasvc/quotasvc/internal/testenv"
)

// checkFrom checks req until the answer comes from source: a copy that was just made takes a moment to be everybody's.
func (in *instance) checkFrom(source Source, req Request) (got Check, err error) {
	in.t.Helper()
	if source == SourceLedger {
		req = fresh(req)
	}
	eventually(in.t, "the answer comes from the "+string(source), func() bool {
		got, err = in.Check(in.t.Context(), req)
		return err != nil || got.Source == source
	})
	return got, err
}

// A check must never promise what the consume behind it refuses, nor the other way round, wherever it reads.
func TestCheck_AnswersWithTheCodeOfConsume(t *testing.T) {
	t.Parallel()
	in := newShared(t)
	in.catalogue(
		catalog.Limit{Rule: "search", Per: []string{"tenant"}, Match: catalog.Match{Route: "search"}, Kind: "token_bucket", Rate: "1/day"},
		catalog.Limit{Rule: "shadow", Per: []string{"tenant"}, Match: catalog.Match{Route: "quiet"}, Kind: "token_bucket", Rate: "1/day", Mode: "shadow"},
	)
	in.topUp("topup", "credits", 5)
	ctx := t.Context()
	route := func(req Request, route string) Request { req.Route = route; return req }
	for _, name := range []string{"search", "quiet"} { // the bucket is empty from here on
		if _, err := in.Consume(ctx, route(ask(name, "calls", 1), name)); err != nil {
			t.Fatal(err)
		}
	}
	two := func(first, second int64) Request {
		req := ask("k", "calls", first)
		req.Items = append(req.Items, ledger.Item{Meter: "credits", Amount: second})
		return req
	}
	for name, tc := range map[string]struct {
		req  Request
		code ledger.Code
		item int
		kind string
	}{
		"allowed":                     {ask("k", "calls", 8), "", -1, ""},
		"a unit too many, it renews":  {ask("k", "calls", 9), ledger.CodeQuotaExceeded, 0, "allowance"},
		"a unit too many, prepaid":    {ask("k", "credits", 6), ledger.CodeCreditsExhausted, 0, "credit"},
		"never granted, not in plan":  {ask("k", "other", 1), ledger.CodeMeterNotInPlan, 0, ""},
		"two items":                   {two(8, 5), "", -1, ""},
		"two items, the second short": {two(8, 6), ledger.CodeCreditsExhausted, 1, "credit"},
		"two items, both short":       {two(9, 6), ledger.CodeQuotaExceeded, 0, "allowance"},
		"rate limited":                {route(ask("k", "calls", 1), "search"), CodeRateLimited, -1, ""},
		"rate limited and short":      {route(ask("k", "calls", 9), "search"), CodeRateLimited, -1, ""},
		"a shadow rule would deny":    {route(ask("k", "calls", 1), "quiet"), "", -1, ""},
		"no such meter":               {ask("k", "nothing", 1), ledger.CodeNotFound, 0, ""},
		"no such tenant":              {Request{Tenant: "nobody", Key: "k", Items: ask("", "calls", 1).Items}, ledger.CodeTenantNotFound, 0, ""},
		"the same meter twice":        {Request{Tenant: "acme", Key: "k", Items: append(ask("", "calls", 1).Items, ask("", "calls", 1).Items...)}, ledger.CodeInvalidArgument, 0, ""},
		"nothing asked for":           {Request{Tenant: "acme", Key: "k"}, ledger.CodeInvalidArgument, 0, ""},
		"no amount":                   {ask("k", "calls", 0), ledger.CodeInvalidArgument, 0, ""},
		"beyond the largest amount":   {ask("k", "calls", ledger.MaxAmount+1), ledger.CodeInvalidArgument, 0, ""},
		"the largest amount":          {ask("k", "calls", ledger.MaxAmount), ledger.CodeQuotaExceeded, 0, "allowance"},
	} {
		dry := tc.req
		dry.DryRun = true
		_, err := in.Consume(ctx, dry)
		in.expect(tc.code, name+": consume", err)
		for _, source := range []Source{SourceLedger, SourceCache} {
			got, err := in.checkFrom(source, tc.req)
			switch tc.code {
			case ledger.CodeNotFound, ledger.CodeTenantNotFound, ledger.CodeInvalidArgument:
				in.expect(tc.code, name+": check", err)
				continue
			}
			if err != nil {
				t.Errorf("%s: check of %s: %v", name, source, err)
				continue
			}
			if got.Code != tc.code || got.Allowed != (tc.code == "") || got.Item != tc.item || got.Source != source {
				t.Errorf("%s: %q, allowed %v, item %d from %s; want %q, item %d from %s",
					name, got.Code, got.Allowed, got.Item, got.Source, tc.code, tc.item, source)
			}
			if (got.Limiting != nil) != (tc.kind != "") || got.Limiting != nil && got.Limiting.Kind != tc.kind {
				t.Errorf("%s: limiting %+v, want kind %q", name, got.Limiting, tc.kind)
			}
			if (got.RetryAfter > 0) != (tc.code == CodeRateLimited || tc.code == ledger.CodeQuotaExceeded) {
				t.Errorf("%s: retry after %s with %q", name, got.RetryAfter, got.Code)
			}
		}
	}
	in.putTenant(catalog.Tenant{ID: "acme", Plan: "basic", Status: catalog.StatusSuspended})
	for _, req := range []Request{ask("k", "calls", 1), ask("k", "calls", 9), fresh(ask("k", "calls", 1))} {
		got, err := in.Check(ctx, req)
		if err != nil || got.Code != ledger.CodeTenantSuspended || got.Limiting != nil {
			t.Errorf("suspended: check says %+v, %v", got, err)
		}
		_, err = in.Consume(ctx, req)
		in.expect(ledger.CodeTenantSuspended, "suspended", err)
	}
}

func TestCheck_ACopyAndPostgresGiveTheSameNumbers(t *testing.T) {
	t.Parallel()
	in := newShared(t)
	in.catalogue()
	if _, err := in.Debit(t.Context(), ask("k", "calls", 4)); err != nil {
		t.Fatal(err)
	}
	in.topUp("topup", "calls", 3)
	for _, amount := range []int64{9, 10, 11} {
		truth, err := in.Check(t.Context(), fresh(ask("", "calls", amount)))
		if err != nil {
			t.Fatal(err)
		}
		got, err := in.checkFrom(SourceCache, ask("", "calls", amount))
		if err != nil {
			t.Fatal(err)
		}
		if amount > 10 {
			// The copy knows the next allowance and not what of the top-up will be left: see CheckItem.WouldSucceedAt.
			truth.Items[0].WouldSucceedAt = time.Time{}
		}
		if got.Items[0] != truth.Items[0] {
			t.Errorf("%d: the copy says\n%+v\npostgresql says\n%+v", amount, got.Items[0], truth.Items[0])
		}
		if want := int64(9); got.Items[0].MaxAllowedNow != want || got.Items[0].Limit != 13 {
			t.Errorf("at most %d of %d now, want %d of 13", got.Items[0].MaxAllowedNow, got.Items[0].Limit, want)
		}
	}
}

func TestCheck_SeesItsOwnInstancesDebitsAtOnceAndOthersSoon(t *testing.T) {
	t.Parallel()
	database, options := testenv.Postgres(t), testenv.Redis(t)
	a, b := newInstance(t, database, patient(options)), newInstance(t, database, patient(options))
	a.catalogue()
	for used := int64(1); used <= 5; used++ {
		if _, err := a.Debit(t.Context(), ask("k"+string(rune('0'+used)), "calls", 1)); err != nil {
			t.Fatal(err)
		}
		got, err := a.Check(t.Context(), ask("", "calls", 1))
		if err != nil || got.Items[0].Remaining != 10-used {
			t.Fatalf("after %d debits the same instance says %+v, %v", used, got.Items, err)
		}
		eventually(t, "the other instance sees the debit", func() bool {
			got, err := b.Check(t.Context(), ask("", "calls", 1))
			return err == nil && got.Items[0].Remaining == 10-used
		})
	}
}

// Where overflow, overage or a subject's cap decide as well, the balance's own copy proves nothing.
func TestCheck_ABalanceThatIsNotAllThereIsToItIsReadFromPostgres(t *testing.T) {
	t.Parallel()
	in := newShared(t)
	in.catalogue()
	overage := int64(5)
	in.putPlan(catalog.Plan{ID: "generous", Allowances: []catalog.Allowance{{
		Meter: "calls", Amount: 10, Every: period.Year, Anchor: period.Calendar,
		Overage: &catalog.Overage{Policy: "allow", Cap: &overage},
	}}})
	in.putTenant(catalog.Tenant{ID: "rich", Plan: "generous"})
	of := func(req Request) Request { req.Tenant = "rich"; return req }
	if _, err := in.Debit(t.Context(), of(ask("k", "calls", 9))); err != nil {
		t.Fatal(err)
	}
	for amount, want := range map[int64]ledger.Code{1: "", 6: "", 7: ledger.CodeQuotaExceeded} {
		got, err := in.Check(t.Context(), of(ask("", "calls", amount)))
		if err != nil || got.Code != want || got.Source != SourceLedger || got.Items[0].MaxAllowedNow != 6 {
			t.Errorf("%d of 1 left and 5 overage: %+v, %v; want %q from the ledger", amount, got, err, want)
		}
		dry := of(ask("dry", "calls", amount))
		dry.DryRun = true
		_, err = in.Consume(t.Context(), dry)
		in.expect(want, "consume", err)
	}
}

func TestCheck_NewTermsAreSeenAtOnceThoughTheBalanceDidNotMove(t *testing.T) {
	t.Parallel()
	in := newShared(t)
	in.catalogue()
	in.topUp("topup", "other", 1) // a period without an end: only new terms end it
	got, err := in.Check(t.Context(), ask("", "other", 2))
	if err != nil || got.Code != ledger.CodeCreditsExhausted {
		t.Fatalf("before: %+v, %v", got, err)
	}
	in.putPlan(catalog.Plan{ID: "more", Allowances: []catalog.Allowance{
		{Meter: "other", Amount: 100, Every: period.Year, Anchor: period.Calendar},
	}})
	in.putTenant(catalog.Tenant{ID: "acme", Plan: "more"})
	got, err = in.Check(t.Context(), ask("", "other", 2))
	if err != nil || !got.Allowed || got.Items[0].Remaining != 101 {
		t.Errorf("after the change of plan: %+v, %v", got, err)
	}
}

func TestCheck_TheSameQuestionAtTheSameTimeIsAskedOnce(t *testing.T) {
	t.Parallel()
	in := newShared(t, func(c *Config) { c.LoadsMax = 1; c.LoadBudget = soon })
	in.catalogue()
	in.loader.turns <- struct{}{} // the only turn is taken
	const callers = 100
	var asking, all sync.WaitGroup
	for range callers {
		asking.Add(1)
		all.Go(func() {
			asking.Done()
			if got, err := in.Check(t.Context(), fresh(ask("", "calls", 1))); err != nil || !got.Allowed {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
	asking.Wait()
	<-in.loader.turns
	all.Wait()
	// Some may have come after the first answer; they share the next ones.
	if loads := testutil.ToFloat64(in.metrics.loads); loads < 1 || loads > callers/4 {
		t.Errorf("%d checks read postgresql %v times", callers, loads)
	}
}

// TestCheck_WhoeverHasATurnAsksForAllWhoWait: a thousand cold balances are not a thousand reads.
func TestCheck_WhoeverHasATurnAsksForAllWhoWait(t *testing.T) {
	t.Parallel()
	in := newShared(t, func(c *Config) { c.LoadsMax = 1; c.LoadBudget = soon })
	in.catalogue()
	const tenants = 3 * loadBatchMax / 2
	for i := range tenants {
		in.putTenant(catalog.Tenant{ID: fmt.Sprint("t", i), Plan: "basic"})
	}
	in.loader.turns <- struct{}{}
	var all sync.WaitGroup
	for i := range tenants + 1 {
		all.Go(func() {
			req := ask("", "calls", 1)
			req.Tenant = fmt.Sprint("t", i)
			switch got, err := in.Check(t.Context(), fresh(req)); {
			case i == tenants:
				in.expect(ledger.CodeTenantNotFound, "a tenant that does not exist is asked for with the others", err)
			case err != nil || !got.Allowed || got.Source != SourceLedger:
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
	eventually(t, "all wait", func() bool {
		in.loader.mu.Lock()
		defer in.loader.mu.Unlock()
		return len(in.loader.waiting) == tenants+1
	})
	<-in.loader.turns
	all.Wait()
	var m dto.Metric
	if err := in.metrics.loadBatch.Write(&m); err != nil {
		t.Fatal(err)
	}
	if reads := m.GetHistogram().GetSampleCount(); reads != 2 {
		t.Errorf("%d questions were %d reads, want 2", tenants+1, reads)
	}
	if len(in.loader.waiting) != 0 || len(in.loader.turns) != 0 {
		t.Error("a question or a turn is left behind")
	}
}

// TestCheck_TheWaitForATurnAndTheReadHaveOneBudget: whoever gets a turn late has the rest of the budget, and not a new one.
func TestCheck_TheWaitForATurnAndTheReadHaveOneBudget(t *testing.T) {
	t.Parallel()
	url := testenv.Postgres(t)
	in := newInstance(t, url, patient(testenv.Redis(t)), func(c *Config) { c.LoadsMax = 1; c.LoadBudget = 2 * time.Second })
	in.catalogue()
	if _, err := in.Check(t.Context(), fresh(ask("", "calls", 1))); err != nil {
		t.Fatal(err)
	}
	in.settle(url)
	table := block(t, url, "LOCK TABLE balances IN ACCESS EXCLUSIVE MODE")
	defer table.release()
	in.loader.turns <- struct{}{}
	time.AfterFunc(in.loader.budget-100*time.Millisecond, func() { <-in.loader.turns })
	started := time.Now()
	_, err := in.loader.check(t.Context(), "acme", "", []ledger.Item{{Meter: "calls", Amount: 1}})
	in.expect(ledger.CodeUnavailable, "postgresql hangs", err)
	if took := time.Since(started); took > in.loader.budget*3/2 {
		t.Errorf("it took %s, and the budget is %s", took, in.loader.budget)
	}
}

// refreshes is how many copies are about to be read again.
func (in *instance) refreshes() int {
	in.refresher.mu.Lock()
	defer in.refresher.mu.Unlock()
	return len(in.refresher.due)
}

// TestCheck_ACopyIsReadAgainBeforeItIsTooOld: a balance in use is read behind its checks' backs, and none of them waits for it.
func TestCheck_ACopyIsReadAgainBeforeItIsTooOld(t *testing.T) {
	t.Parallel()
	in, age := copied(t, testenv.Postgres(t), patient(testenv.Redis(t)))
	if got, err := in.checkFrom(SourceCache, ask("", "calls", 1)); err != nil {
		t.Fatalf("%+v, %v", got, err)
	}
	check := func() {
		t.Helper()
		if got, err := in.Check(t.Context(), ask("", "calls", 1)); err != nil || got.Source != SourceCache || got.Degraded {
			t.Fatalf("%+v, %v; want the copy", got, err)
		}
	}
	before := in.loads()
	age(balances.DefaultFreshFor * 3 / 4)
	check()
	if in.refreshes() != 0 || in.loads() != before {
		t.Error("a young copy was read again")
	}
	age(balances.DefaultFreshFor)
	for range cap(in.loader.turns) {
		in.loader.turns <- struct{}{}
	}
	for range 10 {
		check() // finds no turn, and does not wait for one
	}
	if n := in.refreshes(); n != 1 || in.loads() != before {
		t.Errorf("%d refreshes are due, want 1", n)
	}
	for range cap(in.loader.turns) {
		<-in.loader.turns
	}
	eventually(t, "the copy is read again, once", func() bool { return in.loads() == before+1 && in.refreshes() == 0 })

	in.loader.awayUntil.Store(time.Now().Add(soon).UnixNano())
	check() // by the clock, which stands still, the new copy comes from the future
	age(balances.DefaultFreshFor)
	check()
	if in.refreshes() != 0 || in.loads() != before+1 {
		t.Error("postgresql was asked while it is away")
	}
}

func TestCheck_ReadsOfPostgresAreBounded(t *testing.T) {
	t.Parallel()
	in := newShared(t, func(c *Config) { c.LoadsMax = 1; c.LoadBudget = 20 * time.Millisecond })
	in.catalogue()
	in.loader.turns <- struct{}{}
	_, err := in.Check(t.Context(), ask("", "calls", 1))
	in.expect(ledger.CodeQueueFull, "no turn and no copy", err)
	if e, ok := errors.AsType[*ledger.Error](err); !ok || e.RetryAfter <= 0 {
		t.Errorf("%v says nothing about when to come back", err)
	}
	<-in.loader.turns
	in.loader.budget = soon
	if _, err := in.Check(t.Context(), ask("", "calls", 1)); err != nil {
		t.Fatal(err)
	}
	in.loader.turns <- struct{}{}
	in.loader.budget = 20 * time.Millisecond
	got, err := in.Check(t.Context(), fresh(ask("", "calls", 1)))
	if err != nil || !got.Degraded || !got.Allowed {
		t.Errorf("no turn but a copy: %+v, %v; want it degraded", got, err)
	}
	<-in.loader.turns
}

func TestCheck_ACallerWhoHasGoneDoesNotTakeTheAnswerFromOthers(t *testing.T) {
	t.Parallel()
	url := testenv.Postgres(t)
	in := newInstance(t, url, nil, func(c *Config) { c.LoadBudget = soon })
	in.catalogue()
	in.settle(url)
	if _, err := in.Check(t.Context(), fresh(ask("", "calls", 1))); err != nil { // the tenant is known from here on
		t.Fatal(err)
	}
	table := block(t, url, "LOCK TABLE balances IN ACCESS EXCLUSIVE MODE")
	ctx, cancel := context.WithCancel(t.Context())
	first, second := make(chan error, 1), make(chan error, 1)
	go func() {
		_, err := in.Check(ctx, fresh(ask("", "calls", 1)))
		first <- err
	}()
	table.awaitWaiter(1)
	go func() {
		got, err := in.Check(t.Context(), fresh(ask("", "calls", 1)))
		if err == nil && got.Degraded {
			err = errors.New("it was answered from a copy")
		}
		second <- err
	}()
	cancel()
	if err := <-first; err != nil { // it has a copy, or has gone: both are fine
		in.expect(ledger.CodeUnavailable, "who has gone", err)
	}
	table.release()
	in.expect("", "who has stayed", <-second)
}

func TestCheck_LocalModeAnswersFromItsOwnCopies(t *testing.T) {
	t.Parallel()
	in := newInstance(t, testenv.Postgres(t), nil)
	in.catalogue(twoADay)
	for i, want := range []Source{SourceLedger, SourceLocal} {
		got, err := in.Check(t.Context(), ask("", "calls", 1))
		if err != nil || got.Source != want || got.Degraded || len(got.Limits) != 1 {
			t.Errorf("check %d: %+v, %v; want it from %s", i, got, err, want)
		}
	}
	if _, err := in.Consume(t.Context(), ask("k", "calls", 4)); err != nil {
		t.Fatal(err)
	}
	if got, err := in.Check(t.Context(), ask("", "calls", 7)); err != nil || got.Code != ledger.CodeQuotaExceeded || got.Limits[0].Remaining != 1 {
		t.Errorf("after a consume of 4: %+v, %v", got, err)
	}
}
