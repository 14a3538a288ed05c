package gate

import (
	"fmt"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"

	"github.com/quotasvc/quotasvc/internal/catalog"
	"github.com/quotasvc/quotasvc/internal/catalog/block"
	"github.com/quotasvc/quotasvc/internal/ledger"
)

// A batch gives the same answers as single checks, from held values, Redis or PostgreSQL. Each check is counted once.
func TestCheckBatch_SameAsChecks(t *testing.T) {
	t.Parallel()
	in := newShared(t)
	in.catalogue(catalog.Limit{Rule: "fast", Per: []string{"tenant"}, Kind: "token_bucket", Rate: "5/day"},
		catalog.Limit{Rule: "slow", Per: []string{"subject"}, Kind: "fixed_window", Rate: "1/day"})
	in.putTenant(catalog.Tenant{ID: "away", Plan: "basic", Status: "suspended"})
	in.putBlock(block.Block{Kind: "subject", Tenant: "acme", Value: "bot", Action: "block"})
	in.consumes("", "spent", forSubject("u", request("spent", "calls", 1)))
	var reqs []Request
	for i := range 100 {
		r := request("", []string{"calls", "credits", "other"}[i%3], 1+int64(i%20))
		r.Tenant, r.Subject = []string{"acme", "away", "nobody"}[i%7%3], []string{"", "u", "bot"}[i%5%3]
		reqs = append(reqs, r)
	}
	reqs = append(reqs, Request{Tenant: "acme"}, Request{Tenant: "acme", Items: []ledger.Item{{Meter: "calls", Amount: -1}}})
	answer := func(c *Check, err error) string {
		left := ""
		for _, it := range c.Items {
			left += fmt.Sprint(it.Meter, it.Remaining, it.Code, " ")
		}
		for _, v := range c.Limits {
			left += fmt.Sprint(v.Rule, v.Allowed, v.Remaining, " ")
		}
		return fmt.Sprint(c.Allowed, c.Code, CodeOf(err), left)
	}
	want := make([]string, len(reqs))
	for i := range reqs {
		c, err := in.Check(t.Context(), reqs[i])
		want[i] = answer(&c, err)
	}
	checks := func() (n float64) {
		for _, outcome := range []string{"allowed", "forbidden", "rate_limited", "tenant_not_found", "tenant_suspended", "quota_exceeded", "credits_exhausted", "meter_not_in_plan", "invalid_argument", "not_found"} {
			n += testutil.ToFloat64(in.metrics.decisions.WithLabelValues("check", outcome))
		}
		return n
	}
	for range 3 { // first from Redis; later from memory, when the process holds the levels
		before := checks()
		for i, o := range in.CheckBatch(t.Context(), reqs) {
			assert.Equal(t, want[i], answer(&o.Check, o.Err), "check %d of %s %s", i, reqs[i].Tenant, reqs[i].Subject)
		}
		n := checks() - before
		assert.True(t, n == float64(len(reqs)), "%g checks are counted of %d", n, len(reqs))
	}
	assert.Empty(t, in.CheckBatch(t.Context(), nil))
}
