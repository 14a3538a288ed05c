package e2e

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
	"github.com/quotasvc/quotasvc/lab/bench"
	benchreport "github.com/quotasvc/quotasvc/lab/bench/report"
)

// This is the small form of `make bench-outage`. There are two instances, PostgreSQL, and a load over HTTP. Redis is
// killed during the load and comes back empty. It comes back when both instances have admitted a consume without it. A
// slow machine sends requests late, so the test compares counts and no times. `make bench-outage` measures how long
// callers wait, because no other program uses the machine then.
func TestOutage_RedisKilled_CallersDoNotNotice(t *testing.T) {
	t.Parallel()
	server := testenv.RedisPrivate(t)
	env := using(testenv.PostgresService(t), server.URL, "QUOTASVC_LOG_LEVEL=error", "QUOTASVC_REPLICAS=2")
	var instances []bench.Instance
	running := []*instance{serve(t, env), serve(t, env)}
	for _, in := range running {
		instances = append(instances, bench.Instance{API: strings.TrimPrefix(in.api, "http://"), Ops: strings.TrimPrefix(in.ops, "http://")})
	}
	admitted := func(in *instance) float64 { // without Redis
		return max(0, metricOf(in.metrics(t), `quotasvc_limit_decisions_total{kind="token_bucket",mode="local",outcome="allow",rule="scarce"}`))
	}
	before := make([]float64, len(running)) // a busy machine may decide without Redis already
	r := testenv.Must(t).Get(bench.Outage(t.Context(), bench.OutageConfig{
		Instances: instances, AdminKey: testKey, Rate: 500, Connections: 8,
		// Circuit breakers stay open for five seconds.
		Before: 1200 * time.Millisecond, Away: 800 * time.Millisecond, After: 5600 * time.Millisecond, Drain: testenv.Patience,
		Kill: func() error {
			for i, in := range running {
				before[i] = admitted(in)
			}
			server.Kill()
			return nil
		},
		Back: func(ctx context.Context) error {
			ctx, cancel := context.WithTimeout(ctx, testenv.Patience)
			defer cancel()
			for i, in := range running {
				for admitted(in) <= before[i] {
					if !pace(ctx, 10*time.Millisecond) {
						return errors.New("no consume was admitted while Redis was away")
					}
				}
			}
			server.Start()
			return nil
		},
		Info: server.Info,
	}))
	var text strings.Builder
	assert.NoError(t, r.Print(&benchreport.Printer{Out: &text}))
	t.Log(text.String())
	assert.Empty(t, r.Refused, "answers other than 200 and 429: %v", r.Refused)
	assert.True(t, float64(r.Admitted) <= r.Bound, "%d admitted, at most %.0f may be", r.Admitted, r.Bound)
	var asked int64
	for _, in := range running {
		testenv.Eventually(t, func() bool {
			// Only a request makes an instance try a Redis that was away, and the load may have ended before such a
			// request.
			one := object{"tenant": "t-000000", "route": "/search", "items": []object{{"meter": "api_calls", "amount": 1}}}
			_, err := in.send(t.Context(), "POST", "/v1/check", "", one)
			assert.NoError(t, err)
			asked++
			return metricOf(in.metrics(t), `quotasvc_limit_breaker_open{shard="redis"}`) == 0
		}, "Redis decides again")
	}
	// Each request makes at most one script call. A consume makes a second call, which publishes the balance. Requests
	// that an instance decided alone count too: Redis executes a call even if its answer comes too late.
	most := asked
	for _, phase := range []bench.Phase{r.Before, r.Outage, r.After} {
		most += phase.Requests * 3 / 2
	}
	stats := testenv.Must(t).Get(server.Info(t.Context(), "commandstats"))
	var calls int64
	for _, name := range []string{"cmdstat_evalsha:calls=", "cmdstat_eval:calls="} {
		if _, rest, called := strings.Cut(stats, name); called {
			count, _, _ := strings.Cut(rest, ",")
			calls += testenv.Must(t).Get(strconv.ParseInt(count, 10, 64))
		}
	}
	t.Logf("%d script calls after redis was back, at most %d", calls, most)
	assert.True(t, calls != 0 && calls <= most, "%d script calls after redis was back, want some, and at most %d", calls, most)
}
