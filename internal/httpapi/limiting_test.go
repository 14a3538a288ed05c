package httpapi

import (
	"fmt"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/assert"

	"github.com/quotasvc/quotasvc/client"
	"github.com/quotasvc/quotasvc/internal/httpapi/forwarded"
)

// TestConsume_RateLimited_OneDecision: an alert compares denials with decisions, so each request must count as one
// decision. The headers of a denial also have the remaining units of the balance. Reading the balance must not count
// as a second decision.
func TestConsume_RateLimited_OneDecision(t *testing.T) {
	t.Parallel()
	s := newService(t).limited()
	const demand = `{"tenant":"acme","items":[{"meter":"calls","amount":1}],"route":"/search"}`
	for i, want := range []int{200, 200, 429, 429, 429} {
		a := s.send("/v1/consume", fmt.Sprint("k", i), demand).want(want)
		assert.True(t, a.number(headerQuotaRemaining) == int64(max(8, 9-i)), "request %d: %v", i, a.header)
	}
	gateway := []string{forwarded.HeaderTenant, "acme", forwarded.HeaderMeter, "calls", "X-Forwarded-Uri", "/search"}
	a := s.call("GET", "/v1/authorize/traefik", "", gateway...).want(429)
	assert.True(t, a.number(headerQuotaRemaining) == 8, a.header)
	allowed, denied := s.decisions("search", "allow"), s.decisions("search", "deny")
	assert.True(t, allowed == 2 && denied == 4, "%v allowed and %v denied; want 2 and 4", allowed, denied)
}

// TestConsume_RefundedTokensAreShown: if the balance denies a request, its tokens are refunded, and the headers show
// the refunded tokens. A client that sees no remaining tokens until tomorrow would send no requests until tomorrow.
func TestConsume_RefundedTokensAreShown(t *testing.T) {
	t.Parallel()
	s := newService(t).catalogue()
	for kind, rate := range map[string]string{
		"token_bucket": "2/day", "leaky_bucket": "2/day", "fixed_window": "2/day", "sliding_window": "2/day", "sliding_log": "2/day",
	} {
		s.call("PUT", "/v1/limits/"+kind, fmt.Sprintf(`{"per":["tenant"],"kind":%q,"rate":%q,"match":{"route":"/%s"}}`, kind, rate, kind)).want(201)
	}
	s.eventually("the snapshot has the limits", func() bool { return len(s.server.catalog.Snapshot().Limits) == 5 })
	for _, kind := range []string{"token_bucket", "leaky_bucket", "fixed_window", "sliding_window", "sliding_log"} {
		demand := func(amount int) string {
			return fmt.Sprintf(`{"tenant":"acme","items":[{"meter":"calls","amount":%d}],"route":"/%s"}`, amount, kind)
		}
		left := func(a *answer) int64 { _, r, _ := a.limit(); return r }
		a := s.send("/v1/consume", kind, demand(1)).want(200)
		assert.EqualValues(t, 1, left(a), "%s: charged: %v", kind, a.header)
		a = s.send("/v1/consume", kind+"-refused", demand(100)).want(402, 429)
		assert.EqualValues(t, 1, left(a), "%s: refused by the balance: %v", kind, a.header)
		a = s.send("/v1/consume", kind, demand(1)).want(200)
		assert.True(t, left(a) == 1 && a.header.Get(headerReplayed) != "", "%s: a replay: %v", kind, a.header)
	}
}

// decisions returns how many decisions of the limit named rule had this outcome.
func (s *service) decisions(rule, outcome string) float64 {
	s.t.Helper()
	families, err := s.measured.Gather()
	s.check(err)
	var n float64
	for _, f := range families {
		if f.GetName() != "quotasvc_limit_decisions_total" {
			continue
		}
		for _, m := range f.GetMetric() {
			if labels := labelsOf(m); labels["rule"] == rule && labels["outcome"] == outcome {
				n += m.GetCounter().GetValue()
			}
		}
	}
	return n
}

func labelsOf(m *dto.Metric) prometheus.Labels {
	labels := prometheus.Labels{}
	for _, l := range m.GetLabel() {
		labels[l.GetName()] = l.GetValue()
	}
	return labels
}

// TestConsume_RegionShare: a decision uses the share of this region. The API answers with the whole limit, which all
// regions share.
func TestConsume_RegionShare(t *testing.T) {
	t.Parallel()
	const demand = `{"tenant":"acme","items":[{"meter":"calls","amount":1}]}`
	for kind, tc := range map[string]struct {
		limit, policy string
		capacity      int
	}{
		"token_bucket":   {`"rate":"100/h","burst":10`, `"region";q=3;w=360`, 3},
		"leaky_bucket":   {`"rate":"20/h","burst":10`, `"region";q=3;w=1800`, 3},
		"fixed_window":   {`"rate":"10/day"`, `"region";q=3;w=86400`, 3},
		"sliding_window": {`"rate":"10/day"`, `"region";q=3;w=86400`, 3},
		"sliding_log":    {`"rate":"10/day"`, `"region";q=3;w=86400`, 3},
		"concurrency":    {`"burst":10`, `"region";q=3;qu="concurrent-requests"`, 3},
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			s := newService(t).catalogue()
			body := fmt.Sprintf(`{"per":["tenant"],"kind":%q,%s,"region_share":30}`, kind, tc.limit)
			stored := decoded[client.Limit](s.call("PUT", "/v1/limits/region", body).want(201))
			assert.True(t, stored.RegionShare == 30 && stored.Burst == 10, "stored: %+v", stored)
			s.eventually("the snapshot has the limit", func() bool { return len(s.server.catalog.Snapshot().Limits) == 1 })
			ask, admitted := func(key string) *answer { return s.send("/v1/consume", key, demand) }, 200
			if kind == "concurrency" {
				ask = func(key string) *answer { return s.send("/v1/leases", key, `{"rule":"region","tenant":"acme"}`) }
				admitted = 201
			}
			for i := range tc.capacity {
				a := ask(fmt.Sprint("k", i)).want(admitted)
				assert.True(t, a.header.Get("RateLimit-Policy") == tc.policy, "%v; want %s", a.header, tc.policy)
			}
			ask("beyond").problem(429, "rate_limited")
			got := decoded[client.Limit](s.call("GET", "/v1/limits/region?explain=1", "").want(200))
			assert.True(t, got.RegionShare == 30 && got.Explain.Capacity == int64(tc.capacity), got)
		})
	}
}
