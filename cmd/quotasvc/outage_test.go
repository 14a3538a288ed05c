package main

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/quotasvc/quotasvc/internal/bench"
	benchreport "github.com/quotasvc/quotasvc/internal/bench/report"
	"github.com/quotasvc/quotasvc/internal/testenv"
)

// This test runs beside others, unlike `make bench-outage`. Its time limits are therefore longer: by outageSlack, and by
// machineStalls times the longest stall of the machine during the test. With the race detector no
// core is left, and callers wait a second before the outage as well: what they waited then is added.
//
// A consume waits for a COMMIT in addition. Other tests keep the disk busy: half a second was measured, with Redis and without
// it. Redis costs a check and a consume the same, so checks have the strict limit.
const (
	outageSlack   = 100 * time.Millisecond
	machineStalls = 3
	commitSlack   = time.Second
)

// This is the small form of `make bench-outage`: two instances, PostgreSQL, a steady load over HTTP, and a Redis that is
// killed during the load and comes back empty.
func TestOutage_RedisKilled_CallersDoNotNotice(t *testing.T) {
	t.Parallel()
	server := testenv.RedisPrivate(t)
	env := []string{
		"QUOTASVC_DATABASE_URL=" + testenv.PostgresService(t), "QUOTASVC_REDIS_URL=" + server.URL, "QUOTASVC_ADMIN_KEY=" + testKey,
		"QUOTASVC_LOG_LEVEL=error", "QUOTASVC_REPLICAS=2",
	}
	var instances []bench.Instance
	for range 2 {
		in := serve(t, env)
		instances = append(instances, bench.Instance{API: strings.TrimPrefix(in.api, "http://"), Ops: strings.TrimPrefix(in.ops, "http://")})
	}
	rate := 1000
	if raceDetector {
		rate = 500
	}
	r, err := bench.Outage(t.Context(), bench.OutageConfig{
		Instances: instances, AdminKey: testKey, Rate: rate, Connections: 64,
		// Breakers stay open for five seconds.
		Before: 1200 * time.Millisecond, Away: 800 * time.Millisecond, After: 5600 * time.Millisecond,
		Kill: func() error { server.Kill(); return nil },
		Back: func(context.Context) error { server.Start(); return nil },
		Info: server.Info,
	})
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	if err := r.Print(&benchreport.Printer{Out: &text}); err != nil {
		t.Error(err)
	}
	t.Log(text.String())
	if len(r.Refused) > 0 {
		t.Errorf("answers other than 200 and 429: %v", r.Refused)
	}
	if !raceDetector { // which makes the instances several times slower
		wantNoWaits(t, r)
	}
	if float64(r.Admitted) > r.Bound {
		t.Errorf("%d admitted, at most %.0f may be", r.Admitted, r.Bound)
	}
	if float64(r.AdmittedInOutage) < r.FairInOutage/2 {
		t.Errorf("%d admitted while redis was down; the rule would have %.0f", r.AdmittedInOutage, r.FairInOutage)
	}
	// With the race detector single requests are decided without Redis until the load ends: there is no core for its heartbeats.
	if r.Outage.Local < r.Outage.Requests/2 || r.After.Requests == 0 && !raceDetector {
		t.Errorf("%d of %d requests of the outage were decided without redis, and %d came after it", r.Outage.Local, r.Outage.Requests, r.After.Requests)
	}
	// Each request is one call, and each consume is a second call that publishes the balance. The seconds overlap slightly.
	if most := int64(r.Rate) * 3 / 2; r.CallsAfter == 0 || r.CallsAfter > most {
		t.Errorf("%d script calls in the busiest second after redis was back, want some, and at most %d", r.CallsAfter, most)
	}
}

// wantNoWaits checks how long callers waited in and after an outage of Redis.
func wantNoWaits(t *testing.T, r *bench.OutageResult) {
	t.Helper()
	slack := outageSlack + machineStalls*r.Stall
	if p99 := time.Duration(r.Outage.Check.P99) * time.Microsecond; p99 > 50*time.Millisecond+slack {
		t.Errorf("p99 of check is %s while redis is down", p99)
	}
	for what, p := range map[string]bench.Phase{"in the outage": r.Outage, "after it": r.After} {
		if slowest := time.Duration(p.Check.Max) * time.Microsecond; slowest > 150*time.Millisecond+slack {
			t.Errorf("%s a check took %s", what, slowest)
		}
		if slowest := time.Duration(p.Consume.Max) * time.Microsecond; slowest > 150*time.Millisecond+slack+commitSlack {
			t.Errorf("%s a consume took %s", what, slowest)
		}
	}
}
