package ratelimit

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
	"github.com/quotasvc/quotasvc/internal/ratelimit/rule"
)

func TestDenials_HotTenant_DoesNotReachRedis(t *testing.T) {
	_, client := parallelServer(t)
	l := patientLimiter(t, client, settings{})
	r := compile(t, rule.Spec{ID: "empty", Rate: "1/day", Burst: 2})
	wide, shadow := compile(t, rule.Spec{ID: "wide", Rate: "1/day", Burst: 50}), compile(t, rule.Spec{ID: "shadow", Rate: "1/day", Shadow: true})
	req := Request{Tenant: "acme", Charges: []Charge{{Rule: wide}, {Rule: r}, {Rule: shadow}}}
	for range 3 {
		mustConsume(t, l, req)
	}
	before, began := evalCalls(t, client), time.Now()
	const requests = 2000
	for i := range requests {
		do := mustConsume
		if i%2 == 0 {
			do = mustPeek
		}
		d := do(t, l, req)
		require.True(t, !d.Allowed && !d.Degraded && !d.Verdicts[1].Allowed && d.Verdicts[1].RetryAfter >= 23*time.Hour,
			d)
		if d.Mode == ModeMemo && (!d.Verdicts[0].Allowed || d.Verdicts[0].Remaining != 48 || d.Verdicts[2].Allowed) {
			t.Fatalf("the other verdicts: %+v", d)
		}
	}
	most := int(time.Since(began)/denialFor) + 2
	sent := evalCalls(t, client) - before
	assert.True(t, sent <= most, "%d of %d denied requests reached redis, at most %d should", sent, requests, most)
	// The remembered denial does not affect other costs and buckets.
	d := mustConsume(t, l, Request{Tenant: "acme", Charges: []Charge{{Rule: wide}}})
	assert.True(t, d.Allowed && d.Mode == ModeRedis, "another rule: %+v", d)
	d = mustConsume(t, l, Request{Tenant: "acme", Charges: []Charge{{Rule: r, Cost: 3}}})
	assert.True(t, d.Verdicts[0].Never, "a cost beyond the capacity: %+v", d)
}

// TestDenials_AreRememberedOnlyWhileTheyHold: before each request the test peeks with a limiter that remembers no
// denials. If the peek passes, the request must be admitted, because no other process charges between them.
func TestDenials_AreRememberedOnlyWhileTheyHold(t *testing.T) {
	client := parallelClient(t)
	var clock testClock // of Redis and of both processes
	clock.us.Store(worldStart)
	now := func() time.Time { return time.UnixMicro(clock.now()) }
	l, plain := patientLimiter(t, client, settings{redisNow: clock.now, Now: now}), patientLimiter(t, client, settings{redisNow: clock.now, Now: now, forgetful: true})
	for i, spec := range []rule.Spec{
		{Rate: "97/s", Burst: 3},
		{Rate: "450/s", Burst: 3},
		{Rate: "7001/min", Burst: 3},
		{Kind: "leaky_bucket", Rate: "300/s", Burst: 4},
		{Kind: "fixed_window", Rate: "5/40ms"},
		{Kind: "sliding_window", Rate: "5/40ms"},
		{Kind: "sliding_log", Rate: "5/40ms"},
	} {
		spec.ID = fmt.Sprint("r", i)
		r := compile(t, spec)
		memo, admitted := 0, 0
		for range 1000 {
			clock.advance(time.Duration(50+rand.Int64N(900)) * time.Microsecond)
			req := Request{Tenant: "acme", Charges: []Charge{{Rule: r, Cost: int64(1 + memo%2)}}}
			if memo%7 == 0 { // another process charges, and l does not know it
				mustConsume(t, plain, Request{Tenant: "acme", Charges: []Charge{{Rule: r, Cost: 1}}})
			}
			would := mustPeek(t, plain, req).Allowed
			d := mustConsume(t, l, req)
			require.False(t, would && !d.Allowed,
				"%s %s: redis would have admitted what was denied: %+v", r.Kind, r.Rate, d)
			if d.Mode == ModeMemo {
				memo++
			}
			if d.Allowed {
				admitted++
			}
		}
		assert.True(t, memo >= 20 && admitted >= 5,
			"%s %s: %d denied from memory, %d admitted: the test proved nothing", r.Kind, r.Rate, memo, admitted)
	}
}

func TestDenials_RefundOrReset_Forgets(t *testing.T) {
	client := parallelClient(t)
	ctx := t.Context()
	for what, free := range map[string]func(t *testing.T, l *Limiter, req *Request){
		"a refund": func(t *testing.T, l *Limiter, req *Request) {
			_, err := l.Refund(ctx, *req)
			assert.NoError(t, err)
		},
		"a reset": func(_ *testing.T, l *Limiter, req *Request) {
			key, _ := req.Charges[0].Rule.BucketKey(req.Tenant, "")
			client.Del(ctx, key)
			l.denials.forgetAll()
		},
		"a larger burst": func(t *testing.T, _ *Limiter, req *Request) {
			req.Charges[0].Rule = compile(t, rule.Spec{Rate: "1/day", Burst: 9})
		},
		"another rate": func(t *testing.T, l *Limiter, req *Request) {
			req.Charges[0].Rule = compile(t, rule.Spec{Rate: "1000000/s", Burst: 4})
			mustPeek(t, l, *req) // the bucket is refilled at the new rate from here on
		},
		"a smaller cost": func(_ *testing.T, _ *Limiter, req *Request) { req.Charges[0].Cost = 1 },
		"a shadow rule": func(t *testing.T, _ *Limiter, req *Request) {
			req.Charges[0].Rule = compile(t, rule.Spec{Rate: "1/day", Burst: 4, Shadow: true})
		},
	} {
		t.Run(what, func(t *testing.T) {
			l := patientLimiter(t, client, settings{})
			tenant := strings.ReplaceAll(what, " ", "-")
			req := Request{Tenant: tenant, Charges: []Charge{{Rule: compile(t, rule.Spec{Rate: "1/day", Burst: 4}), Cost: 3}}}
			mustConsume(t, l, req)
			require.True(t, mustConsume(t, l, req).Mode == ModeRedis && mustConsume(t, l, req).Mode == ModeMemo,
				"nothing is remembered")
			free(t, l, &req)
			d := mustConsume(t, l, req)
			assert.True(t, d.Allowed && d.Mode == ModeRedis, d)
		})
	}
}

// TestDenials_FromBeforeARefund_AreNotKept: if a refund comes between a request and the reply with its denial, the
// denial is not remembered.
func TestDenials_FromBeforeARefund_AreNotKept(t *testing.T) {
	t.Parallel()
	d := newDenials()
	q := queryFor(t, "acme", Charge{Rule: compile(t, rule.Spec{Rate: "1/day"})})
	asOf := d.asOf(&q)
	d.forget(q.charges[0].key)
	d.remember(&q.charges[0], asOf[0], 1, time.Hour)
	e, known := d.of(&q.charges[0], 2)
	assert.False(t, known, "%+v is remembered", e)
	asOf = d.asOf(&q)
	d.remember(&q.charges[0], asOf[0], 1, time.Hour)
	e, known = d.of(&q.charges[0], 2)
	assert.True(t, known && e.until == 1+denialFor.Microseconds() && e.back == 1+time.Hour.Microseconds(), "%+v, %v", e, known)
	e, known = d.of(&q.charges[0], 1+denialFor.Microseconds())
	assert.True(t, !known && d.live.Load() == 0, "%+v, %d remembered", e, d.live.Load())
}

func TestDenials_AreBoundedAndExpire(t *testing.T) {
	t.Parallel()
	d := newDenials()
	r := compile(t, rule.Spec{Rate: "1/day"})
	testenv.Together(4, func(g int) {
		for i := range denialsMax / 2 {
			q := queryFor(t, fmt.Sprintf("t%d-%d", g, i), Charge{Rule: r})
			d.remember(&q.charges[0], d.asOf(&q)[0], 1, time.Hour)
		}
	})
	n := d.live.Load()
	assert.True(t, n <= denialsMax && n >= denialsMax/2, "%d are remembered, at most %d may be", n, denialsMax)
	for i := range denialsMax {
		q := queryFor(t, fmt.Sprintf("later-%d", i), Charge{Rule: r})
		d.remember(&q.charges[0], d.asOf(&q)[0], 10_000_000, time.Hour)
	}
	stale := 0
	for i := range d.stripes {
		for _, e := range d.stripes[i].all {
			if e.until < 10_000_000 {
				stale++
			}
		}
	}
	assert.True(t, stale <= denialsMax/4, "%d of %d are long over", stale, d.live.Load())
	d.forgetAll()
	assert.Zero(t, d.live.Load(), "are left")
}

// forgetAll drops all remembered denials, so that the next request of each bucket is sent to Redis.
func (d *denials) forgetAll() {
	for i := range d.stripes {
		s := &d.stripes[i]
		s.mu.Lock()
		s.forgotten.Add(1)
		d.live.Add(-int64(len(s.all)))
		clear(s.all)
		s.mu.Unlock()
	}
}
