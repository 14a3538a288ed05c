package gate

import (
	"testing"
	"time"

	"github.com/quotasvc/quotasvc/internal/catalog"
	"github.com/quotasvc/quotasvc/internal/testenv"
)

// A caller that is refused while Redis hangs must not wait for Redis twice.
func TestCheckBalances_AsksNoLimits_NoRedisThatIsAway(t *testing.T) {
	t.Parallel()
	in := newShared(t)
	in.catalogue(catalog.Limit{Rule: "twice", Per: []string{"tenant"}, Kind: "token_bucket", Rate: "2/day"})
	for _, key := range []string{"one", "two"} {
		_, err := in.Consume(t.Context(), request(key, "calls", 1))
		in.expectCode("", key, err)
	}
	req := request("three", "calls", 1)
	refused, err := in.Consume(t.Context(), req)
	in.expectCode(CodeRateLimited, "three", err)
	before := in.decisionsOf("twice")
	eventually(t, "redis has the copy", func() bool {
		got, err := in.CheckBalances(t.Context(), req, &refused)
		return err == nil && got.Source == SourceCache && got.Items[0].Remaining == 8
	})
	refused.LimitsDegraded = true
	if got, err := in.CheckBalances(t.Context(), req, &refused); err == nil && got.Source == SourceCache {
		t.Errorf("redis was asked: %+v", got)
	}
	if got := in.decisionsOf("twice"); got != before {
		t.Errorf("the limit decided %d more times", got-before)
	}
}

func TestCheckBalances_PostgresSlow_ReturnsSoon(t *testing.T) {
	t.Parallel()
	url := testenv.Postgres(t)
	in := newInstance(t, url, patientClient(testenv.Redis(t)), func(c *Config) { c.LoadBudget = soon })
	in.catalogue()
	in.awaitAnnouncements(url)
	if _, err := in.Check(t.Context(), request("", "calls", 1)); err != nil { // the catalogue keeps the tenant from here on
		t.Fatal(err)
	}
	table := block(t, url, "LOCK TABLE balances IN ACCESS EXCLUSIVE MODE")
	defer table.release()
	started := time.Now()
	if got, err := in.CheckBalances(t.Context(), fromPostgres(request("", "calls", 1)), &Debited{LimitsDegraded: true}); err == nil && !got.Degraded {
		t.Errorf("%+v", got)
	}
	if took := time.Since(started); took > time.Second { // balances.ReadPatience on an idle machine; the ledger's 3 s without it
		t.Errorf("it took %s", took)
	}
}

// decisionsOf returns the number of decisions of a rule in the metrics.
func (in *instance) decisionsOf(rule string) (n int) {
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
