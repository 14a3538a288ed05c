package httpapi

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/quotasvc/quotasvc/client"
)

func (s *service) limitNamed(rule, body string) {
	s.t.Helper()
	s.call("PUT", "/v1/limits/"+rule, body).want(200, 201)
}

func TestGetLimit_Explain(t *testing.T) {
	t.Parallel()
	s := newService(t).catalogue()
	for _, c := range []struct {
		name, body string
		check      func(e *client.LimitExplanation) bool
	}{
		{"bucket", `{"per":["tenant"],"kind":"token_bucket","rate":"7/s","burst":20}`, func(e *client.LimitExplanation) bool {
			return e.Capacity == 20 && e.UnitsPerToken == 1_000_000 && e.UnitsPerMicrosecond == 7 && e.FirstSecond == 27 && e.MostPerPeriod == 27 &&
				e.PerSecond == 7 && e.RedisAway.CapacityEach == 20 && e.RedisAway.Holders == 1 && strings.Contains(e.Summary, "20 at once, then 7/s")
		}},
		{"queue", `{"per":["tenant"],"kind":"leaky_bucket","rate":"2/s","burst":10,"on_backend_error":"open"}`, func(e *client.LimitExplanation) bool {
			return e.Capacity == 10 && e.PerSecond == 2 && e.RedisAway.OnBackendError == "open" && e.RedisAway.CapacityEach == 0 && e.RedisAway.Holders == 0
		}},
		{"daily", `{"per":["tenant","subject"],"kind":"fixed_window","rate":"100/day","timezone":"Europe/Berlin"}`, func(e *client.LimitExplanation) bool {
			return e.Capacity == 100 && e.MostPerPeriod == 200 && e.Window.End.After(e.Window.Start) && e.UnitsPerToken == 0
		}},
		{"sliding", `{"per":["tenant"],"kind":"sliding_window","rate":"100/min"}`, func(e *client.LimitExplanation) bool { return e.MostPerPeriod == 200 }},
		{"log", `{"per":["ip"],"kind":"sliding_log","rate":"5/h"}`, func(e *client.LimitExplanation) bool { return e.MostPerPeriod == 5 && e.FirstSecond == 5 }},
		{"jobs", `{"per":["tenant"],"kind":"concurrency","burst":3}`, func(e *client.LimitExplanation) bool {
			return e.Capacity == 3 && e.LeaseTTLSeconds == 60 && e.PerSecond == 0
		}},
	} {
		s.limitNamed(c.name, c.body)
		var plain, told client.Limit
		s.call("GET", "/v1/limits/"+c.name, "").want(200).into(&plain)
		assert.Empty(t, plain.Explain.Summary, "%s explains itself unasked: %+v", c.name, plain.Explain)
		s.call("GET", "/v1/limits/"+c.name+"?explain=1", "").want(200).into(&told)
		e := &told.Explain
		assert.False(t, e.Summary == "" || e.KeptSeconds < 1 || e.RedisAway.Replicas != 1 ||
			c.name != "jobs" && (e.BytesPerBucket < 100 || e.BytesPerBucket > 400) || !c.check(e), "%s: %+v", c.name, e)
	}
	// A limit that only a plan has, and a general limit that a plan's limit of the same name replaces.
	s.call("PUT", "/v1/plans/basic", `{"allowances":[{"meter":"calls","amount":10,"every":"month","anchor":"calendar"}],"limits":[
		{"rule":"own","per":["tenant"],"kind":"token_bucket","rate":"3/s"},{"rule":"bucket","per":["tenant"],"kind":"token_bucket","rate":"4/s"}]}`).want(200, 201)
	s.eventually("the plan is known", func() bool {
		plan := s.server.catalog.Snapshot().Plans["basic"]
		return plan != nil && len(plan.Limits) == 2
	})
	for name, capacity := range map[string]int64{"own": 3, "bucket": 4, "daily": 100} {
		var told client.Limit
		a := s.call("GET", "/v1/limits/"+name+"?explain=1&tenant=acme", "").want(200)
		a.into(&told)
		assert.True(t, told.Explain.Capacity == capacity && !told.CreatedAt.IsZero(), "%s: %s", name, a.body)
	}
	p := s.call("GET", "/v1/limits/own?explain=1", "").problem(404, "not_found")
	assert.True(t, strings.Contains(p.Detail, "plan=") && strings.Contains(p.Detail, "tenant="), p)
	s.call("GET", "/v1/limits/own?explain=1&tenant=nobody", "").problem(404, "tenant_not_found")
	s.call("GET", "/v1/limits/bucket?explain=2", "").refused("explain")
	s.call("GET", "/v1/limits/bucket?tenant=acme", "").refused("tenant")
	s.call("GET", "/v1/limits/none?explain=1", "").problem(404, "not_found")
}

func TestResetLimit_FillsOneBucket(t *testing.T) {
	t.Parallel()
	s := newService(t).catalogue()
	s.limitNamed("each", `{"per":["tenant","subject"],"kind":"token_bucket","rate":"1/day"}`)
	consume := func(key, subject string) *answer {
		return s.send("/v1/consume", key, fmt.Sprintf(`{"tenant":"acme","subject":%q,"items":[{"meter":"calls","amount":1}]}`, subject))
	}
	s.eventually("the limit is enforced", func() bool {
		return consume("first", "u1").header.Get("RateLimit") != "" || consume("probe", "u1").status == 429
	})
	for _, subject := range []string{"u1", "u2"} {
		s.eventually("the bucket is empty", func() bool {
			return consume("empty-"+subject, subject).status == 429 || consume("more-"+subject, subject).status == 429
		})
	}
	reset := func(body string) *answer { return s.call("POST", "/v1/limits/each/reset", body) }
	reset(`{"tenant":"acme"}`).refused("subject")
	reset(`{"tenant":"acme","subject":"u1","ip":"192.0.2.1"}`).refused("ip")
	s.call("POST", "/v1/limits/none/reset", `{"tenant":"acme"}`).problem(404, "not_found")
	for i, existed := range []bool{true, false} {
		got := decoded[client.ResetAnswer](reset(`{"tenant":"acme","subject":"u1"}`).want(200))
		assert.True(t, got.Rule == "each" && got.Existed == existed, "reset %d: %+v", i, got)
	}
	consume("after-u1", "u1").want(200)
	consume("after-u2", "u2").problem(429, "rate_limited")
}
