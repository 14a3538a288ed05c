package ratelimit

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
	"github.com/quotasvc/quotasvc/internal/ratelimit/rule"
	"github.com/quotasvc/quotasvc/internal/ratelimit/rule/oracle"
)

// cutHook makes the pipelines of a client fail while cut is true: before they are sent or, if late is true, after they
// ran. It counts the commands that are sent.
type cutHook struct {
	cut, late atomic.Bool
	sent      atomic.Int64
}

func (h *cutHook) DialHook(next redis.DialHook) redis.DialHook          { return next }
func (h *cutHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }
func (h *cutHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) (err error) {
		cut := h.cut.Load()
		if !cut || h.late.Load() {
			h.sent.Add(int64(len(cmds)))
			err = next(ctx, cmds)
		}
		if cut {
			err = errors.New("cut off")
			for _, cmd := range cmds {
				cmd.SetErr(err)
			}
		}
		return err
	}
}

// TestLimits_Outages_EqualTheOracle: a process that is cut off from Redis and comes back, again and again, decides as
// if it had never been cut off. All tokens of a log that were taken meanwhile count as taken with the newest of them,
// so logs are left out.
func TestLimits_Outages_EqualTheOracle(t *testing.T) {
	client := parallelClient(t)
	hook := &cutHook{}
	client.AddHook(hook)
	var clock testClock
	clock.us.Store(worldStart)
	l := patientLimiter(t, client, settings{
		redisNow: clock.now, Now: func() time.Time { return time.UnixMicro(clock.now()) }, forgetful: true,
	})
	l.carrying.Store(true) // the goroutine does not run: this clock must not jump while it sends something
	run := 0
	rapid.Check(t, func(t *rapid.T) {
		run++
		w, o := drawWorld(t), oracle.New()
		for i, r := range w.rules {
			for r.Kind == rule.KindSlidingLog || r.Ban.After > 0 { // the bans of an outage are this process's alone
				kind := rapid.IntRange(int(rule.KindTokenBucket), int(rule.KindSlidingWindow)).Draw(t, "kind")
				r = drawRuleOf(t, r.ID, rule.Kind(kind))
			}
			w.rules[i] = r
		}
		w.now = clock.now() + 1
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			w.now += rapid.OneOf(
				rapid.Int64Range(0, 2000), rapid.Int64Range(1, 5_000_000), rapid.Int64Range(1, 100_000_000_000),
			).Draw(t, "us")
			if rapid.IntRange(0, 3).Draw(t, "change") == 0 {
				hook.cut.Store(!hook.cut.Load())
			}
			// Redis may run a repeated raise and lose the reply. If it ran a request, this would be charged twice.
			hook.late.Store(len(l.local.unsure) > 0 && rapid.Bool().Draw(t, "late"))
			what, req := w.drawRequest(t, fmt.Sprintf("acme-%d", run))
			if what == rule.Refund {
				what = rule.Consume
			}
			for i := range req.Charges {
				req.Charges[i].Zone = nil
			}
			q := testenv.Must(t).Get(req.check(what))
			clock.us.Store(w.now)
			o.Forget(w.now)
			d := testenv.Must(t).Get(perform(l, what, req))
			allowed, rows := o.Decide(w.now, what, oracleCharges(&q))
			sameDecision(t, q.charges, d, allowed, rows)
		}
		hook.cut.Store(false)
	})
}
