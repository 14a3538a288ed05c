package e2e

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
	"github.com/quotasvc/quotasvc/lab/bench"
	benchreport "github.com/quotasvc/quotasvc/lab/bench/report"
)

// This is the small form of `make bench-outage`. There are two instances, PostgreSQL, and a steady load over HTTP.
// Redis is killed during the load and comes back empty. This test does not measure how long callers wait. `make
// bench-outage` does, because no other program uses the machine then.
func TestOutage_RedisKilled_CallersDoNotNotice(t *testing.T) {
	t.Parallel()
	server := testenv.RedisPrivate(t)
	env := using(testenv.PostgresService(t), server.URL, "QUOTASVC_LOG_LEVEL=error", "QUOTASVC_REPLICAS=2")
	var instances []bench.Instance
	running := []*instance{serve(t, env), serve(t, env)}
	for _, in := range running {
		instances = append(instances, bench.Instance{API: strings.TrimPrefix(in.api, "http://"), Ops: strings.TrimPrefix(in.ops, "http://")})
	}
	r := testenv.Must(t).Get(bench.Outage(t.Context(), bench.OutageConfig{
		Instances: instances, AdminKey: testKey, Rate: 500, Connections: 64,
		// Circuit breakers stay open for five seconds.
		Before: 1200 * time.Millisecond, Away: 800 * time.Millisecond, After: 5600 * time.Millisecond,
		Kill: func() error { server.Kill(); return nil },
		Back: func(context.Context) error { server.Start(); return nil },
		Info: server.Info,
	}))
	var text strings.Builder
	assert.NoError(t, r.Print(&benchreport.Printer{Out: &text}))
	t.Log(text.String())
	assert.Empty(t, r.Refused, "answers other than 200 and 429: %v", r.Refused)
	assert.True(t, float64(r.Admitted) <= r.Bound, "%d admitted, at most %.0f may be", r.Admitted, r.Bound)
	assert.True(t, float64(r.AdmittedInOutage) >= r.FairInOutage/2,
		"%d admitted while redis was down; the rule would have %.0f", r.AdmittedInOutage, r.FairInOutage)
	assert.True(t, r.Outage.Local >= r.Outage.Requests/2,
		"%d of %d requests of the outage were decided without redis", r.Outage.Local, r.Outage.Requests)
	for _, in := range running {
		testenv.Eventually(t, func() bool {
			// Only a request makes an instance try a Redis that was away, and the load may have ended before such a
			// request.
			one := object{"tenant": "t-000000", "route": "/search", "items": []object{{"meter": "api_calls", "amount": 1}}}
			_, err := in.send(t.Context(), "POST", "/v1/check", "", one)
			assert.NoError(t, err)
			return metricOf(in.metrics(t), `quotasvc_limit_breaker_open{shard="redis"}`) == 0
		}, "Redis decides again")
	}
	// Each request is one script call. A consume makes a second call, which publishes the balance. The seconds
	// overlap slightly.
	most := int64(r.Rate) * 3 / 2
	assert.True(t, r.CallsAfter != 0 && r.CallsAfter <= most,
		"%d script calls in the busiest second after redis was back, want some, and at most %d", r.CallsAfter, most)
}
