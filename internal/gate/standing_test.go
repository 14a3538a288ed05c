package gate

import (
	"testing"
	"time"

	"github.com/quotasvc/quotasvc/internal/catalog"
	"github.com/quotasvc/quotasvc/internal/testenv"
)

// TestStanding_AsksNoLimitsAndNoRedisThatHasJustNotAnswered, or who is refused while Redis hangs waits for it twice.
func TestStanding_AsksNoLimitsAndNoRedisThatHasJustNotAnswered(t *testing.T) {
	t.Parallel()
	in := newShared(t)
	in.catalogue(catalog.Limit{Rule: "twice", Per: []string{"tenant"}, Kind: "token_bucket", Rate: "2/day"})
	for _, key := range []string{"one", "two"} {
		_, err := in.Consume(t.Context(), ask(key, "calls", 1))
		in.expect("", key, err)
	}
	req := ask("three", "calls", 1)
	refused, err := in.Consume(t.Context(), req)
	in.expect(CodeRateLimited, "three", err)
	decided := in.decided("twice")
	eventually(t, "redis has the copy", func() bool {
		got, err := in.Standing(t.Context(), req, &refused)
		return err == nil && got.Source == SourceCache && got.Items[0].Remaining == 8
	})
	refused.LimitsDegraded = true
	if got, err := in.Standing(t.Context(), req, &refused); err == nil && got.Source == SourceCache {
		t.Errorf("redis was asked: %+v", got)
	}
	if got := in.decided("twice"); got != decided {
		t.Errorf("the limit has decided %d times more", got-decided)
	}
}

// TestStanding_WaitsForNoSlowPostgres while Redis is away.
func TestStanding_WaitsForNoSlowPostgres(t *testing.T) {
	t.Parallel()
	url := testenv.Postgres(t)
	in := newInstance(t, url, patient(testenv.Redis(t)), func(c *Config) { c.LoadBudget = soon })
	in.catalogue()
	in.settle(url)
	if _, err := in.Check(t.Context(), ask("", "calls", 1)); err != nil { // the tenant is known from here on
		t.Fatal(err)
	}
	table := block(t, url, "LOCK TABLE balances IN ACCESS EXCLUSIVE MODE")
	defer table.release()
	started := time.Now()
	if got, err := in.Standing(t.Context(), fresh(ask("", "calls", 1)), &Debited{LimitsDegraded: true}); err == nil && !got.Degraded {
		t.Errorf("%+v", got)
	}
	if took := time.Since(started); took > time.Second { // on an idle machine it is balances.ReadPatience, and without one the ledger's own 3 s
		t.Errorf("it took %s", took)
	}
}

// decided counts what metrics say that a rule has decided.
func (in *instance) decided(rule string) (n int) {
	in.t.Helper()
	families, err := in.measured.Gather()
	if err != nil {
		in.t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() != "quotasvc_limit_decisions_total" {
			continue
		}
		for _, m := range f.GetMetric() {
			if label(m, "rule") == rule {
				n += int(m.GetCounter().GetValue())
			}
		}
	}
	return n
}
