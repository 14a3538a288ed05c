package gate

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/quotasvc/quotasvc/internal/catalog"
	"github.com/quotasvc/quotasvc/internal/ledger"
	"github.com/quotasvc/quotasvc/internal/testenv"
)

func TestOutage_RedisKilled(t *testing.T) {
	t.Parallel()
	server := testenv.RedisPrivate(t)
	in := newInstance(t, testenv.Postgres(t), prompt(t, server.URL))
	in.catalogue(
		catalog.Limit{Rule: "two", Per: []string{"tenant"}, Kind: "token_bucket", Rate: "2/day"},
		catalog.Limit{
			Rule: "strict", Per: []string{"tenant"}, Match: catalog.Match{Route: "login"}, Kind: "token_bucket", Rate: "5/day", OnBackendError: "closed",
		},
	)
	login := ask("login", "calls", 1)
	login.Route = "login"
	if got, err := in.Check(t.Context(), ask("", "calls", 1)); err != nil || got.Degraded {
		t.Fatalf("before: %+v, %v", got, err)
	}
	server.Kill()

	got, err := in.Check(t.Context(), ask("", "calls", 1))
	if err != nil || !got.Allowed || got.Source != SourceLedger || !got.Degraded {
		t.Errorf("check without redis: %+v, %v; want it from the ledger, its limits degraded", got, err)
	}
	made, err := in.Consume(t.Context(), ask("one", "calls", 1))
	in.expect("", "consume without redis", err)
	if err == nil && (made.Result.Items[0].Remaining != 9 || !made.Limits[0].Degraded) {
		t.Errorf("consume without redis: %+v", made)
	}
	_, err = in.Consume(t.Context(), login)
	if refused, ok := errors.AsType[*ReducedCapacity](err); !ok || len(refused.Violated) != 1 || refused.Violated[0] != "strict" || refused.RetryAfter <= 0 {
		t.Errorf("a closed rule without redis: %v", err)
	}
	if _, err := in.Check(t.Context(), login); CodeOf(err) != ledger.CodeUnavailable {
		t.Errorf("a check of a closed rule without redis: %v", err)
	}
	if left := in.remaining("calls"); left != 9 {
		t.Errorf("%d units are left, want 9: the refused request was debited", left)
	}

	server.Start()
	eventually(t, "copies answer again", func() bool {
		got, err := in.Check(t.Context(), ask("", "calls", 1))
		return err == nil && got.Source == SourceCache && !got.Degraded && got.Items[0].Remaining == 9
	})
}

func TestOutage_PostgresKilled(t *testing.T) {
	t.Parallel()
	server := testenv.PostgresPrivate(t)
	in := newInstance(t, server.URL, patient(testenv.Redis(t)))
	in.catalogue(twoADay)
	if _, err := in.Consume(t.Context(), ask("one", "calls", 4)); err != nil {
		t.Fatal(err)
	}
	if _, err := in.checkFrom(SourceCache, ask("", "calls", 1)); err != nil {
		t.Fatal(err)
	}
	server.Kill()

	got, err := in.Check(t.Context(), ask("", "calls", 1))
	if err != nil || !got.Allowed || got.Items[0].Remaining != 6 {
		t.Errorf("check from a fresh copy: %+v, %v", got, err)
	}
	for range 3 { // the first asks postgresql, the others know better
		got, err = in.Check(t.Context(), fresh(ask("", "calls", 7)))
		if err != nil || !got.Degraded || got.Code != ledger.CodeQuotaExceeded || got.AsOf.IsZero() {
			t.Errorf("check that wants postgresql: %+v, %v; want it degraded", got, err)
		}
	}
	if _, err := in.Check(t.Context(), ask("", "credits", 1)); CodeOf(err) != ledger.CodeUnavailable {
		t.Errorf("check of a balance without a copy: %v", err)
	}
	for name, call := range map[string]func(context.Context, Request) (Debited, error){"debit": in.Debit, "consume": in.Consume} {
		_, err := call(t.Context(), ask("two-"+name, "calls", 1))
		e, ok := errors.AsType[*ledger.Error](err)
		if !ok || e.Code != ledger.CodeUnavailable && e.Code != ledger.CodeOutcomeUnknown || e.RetryAfter <= 0 {
			t.Errorf("%s: %v; want unavailable and when to retry", name, err)
		}
	}
	server.Start()
	eventually(t, "debits are made again", func() bool {
		_, err := in.Debit(t.Context(), ask("three", "calls", 1))
		return err == nil
	})
	eventually(t, "checks are not degraded any more", func() bool {
		got, err := in.Check(t.Context(), fresh(ask("", "calls", 1)))
		return err == nil && !got.Degraded && got.Source == SourceLedger
	})
	if tokens := in.tokens(); tokens != 1 {
		t.Errorf("%d tokens are left, want 1: the failed consume kept its token", tokens)
	}
}

func TestOutage_AHangingPostgresDoesNotHangChecks(t *testing.T) {
	t.Parallel()
	server := testenv.PostgresPrivate(t)
	in := newInstance(t, server.URL, patient(testenv.Redis(t)), func(c *Config) { c.LoadBudget = 200 * time.Millisecond })
	in.catalogue()
	in.settle(server.URL)
	if _, err := in.Check(t.Context(), ask("", "calls", 1)); err != nil {
		t.Fatal(err)
	}
	server.Pause()
	defer server.Resume()
	started := time.Now()
	const checks = 50
	for range checks {
		got, err := in.Check(t.Context(), fresh(ask("", "calls", 1)))
		if err != nil || !got.Allowed || !got.Degraded {
			t.Fatalf("check: %+v, %v", got, err)
		}
	}
	// A budget of the catalogue and one of the gate per pause of a second, not per check.
	if took := time.Since(started); took > 5*time.Second {
		t.Errorf("%d checks took %s", checks, took)
	}
}

func TestOutage_BothKilled(t *testing.T) {
	t.Parallel()
	pg, rd := testenv.PostgresPrivate(t), testenv.RedisPrivate(t)
	in := newInstance(t, pg.URL, prompt(t, rd.URL))
	in.catalogue()
	if _, err := in.Debit(t.Context(), ask("one", "calls", 4)); err != nil {
		t.Fatal(err)
	}
	pg.Kill()
	rd.Kill()
	got, err := in.Check(t.Context(), ask("", "calls", 7))
	if err != nil || !got.Degraded || got.Source != SourceLocal || got.Code != ledger.CodeQuotaExceeded {
		t.Errorf("check: %+v, %v; want this process's copy, degraded", got, err)
	}
}

// TestOutage_AHangingRedisDoesNotHangChecks: the first few wait for it, with limits or without, until the breaker opens.
func TestOutage_AHangingRedisDoesNotHangChecks(t *testing.T) {
	t.Parallel()
	server := testenv.RedisPrivate(t)
	in := newInstance(t, testenv.Postgres(t), prompt(t, server.URL))
	in.catalogue(catalog.Limit{Rule: "limit", Per: []string{"tenant"}, Match: catalog.Match{Route: "limited"}, Kind: "token_bucket", Rate: "1000/s"})
	limited := ask("", "calls", 1)
	limited.Route = "limited"
	for _, req := range []Request{limited, ask("", "calls", 1)} {
		if _, err := in.checkFrom(SourceCache, req); err != nil {
			t.Fatal(err)
		}
	}
	server.Pause()
	defer server.Resume()
	started := time.Now()
	const checks = 100
	for i := range checks {
		req := ask("", "calls", 1)
		if i%2 == 0 {
			req = limited
		}
		got, err := in.Check(t.Context(), req)
		if err != nil || !got.Allowed || got.Source != SourceLedger {
			t.Fatalf("check %d: %+v, %v", i, got, err)
		}
	}
	if took := time.Since(started); took > 10*time.Second {
		t.Errorf("%d checks took %s", checks, took)
	}
}
