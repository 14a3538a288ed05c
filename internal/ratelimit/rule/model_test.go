package rule_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/quotasvc/quotasvc/internal/ratelimit/rule"
	"github.com/quotasvc/quotasvc/internal/ratelimit/rule/oracle"
)

// start is a time in 2026, in µs, so that the numbers are as large as in real use.
const start = int64(1_790_000_000_123_456)

// TestLimit_EqualsTheOracle makes random charges on one rule, of any kind, with clock steps in both directions. The
// verdict, the remaining tokens and the times to wait must equal the oracle's, which computes with exact fractions.
func TestLimit_EqualsTheOracle(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		r := drawRule(t)
		l, o, now := r.Limit(), oracle.New(), start
		var state rule.State
		until := int64(0)
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			now += rapid.OneOf(
				rapid.Int64Range(0, 2000), rapid.Int64Range(0, 5_000_000), rapid.Int64Range(0, 100_000_000_000),
				rapid.SampledFrom([]int64{-1, -1000, -5_000_000, -5_000_001, -3_600_000_000}),
			).Draw(t, "us")
			cost := rapid.OneOf(rapid.Int64Range(1, min(20, r.Burst+1)), rapid.Int64Range(1, r.Burst)).Draw(t, "cost")
			op := rapid.SampledFrom([]rule.Op{rule.Consume, rule.Consume, rule.Late, rule.Peek, rule.Refund}).Draw(t, "op")
			taken := int64(rule.UnknownTime)
			if (op == rule.Refund || op == rule.Late) && rapid.Bool().Draw(t, "of an earlier charge") {
				taken = now + rapid.Int64Range(-2*r.Rate.Period.Microseconds(), r.Rate.Period.Microseconds()).Draw(t, "its time")
			}
			o.Forget(now)
			_, rows := o.Decide(now, op, []oracle.Charge{{
				Kind: r.Kind, Key: "key", Count: r.Rate.Count, Period: r.Rate.Period.Microseconds(), Capacity: r.Burst, Cost: cost, Debt: r.Debt, Taken: taken,
			}})
			if until <= now {
				state = rule.State{} // the bucket is full: its state may have been dropped
			}
			level := l.Advance(state, rule.Moment{Now: now})
			got := oracle.Row{Code: rule.Pass}
			if op == rule.Consume || op == rule.Peek {
				got.Code = rule.Judge(l, level, cost)
			}
			own, dirty := int64(0), level.Rebased
			switch {
			case op == rule.Refund:
				before := level
				level = l.Refund(level, cost, taken)
				dirty = dirty || level.Used != before.Used || level.Prev != before.Prev
			case op == rule.Consume && got.Code == rule.Pass:
				level, own, got.Taken, dirty = l.Charge(level, cost, rule.UnknownTime), cost, cost, true
			case op == rule.Late:
				before := level
				if got.Taken = rule.Taken(l, level, cost); got.Taken > 0 {
					level, own = l.Charge(level, got.Taken, taken), got.Taken
				}
				dirty = dirty || level.Used != before.Used || level.Prev != before.Prev
			}
			got.Remaining, got.Reset = rule.Remaining(l, level), l.Wait(level, r.Burst).Microseconds()
			if got.Remaining < r.Burst {
				got.Next = l.Wait(level, got.Remaining+1).Microseconds()
			}
			if got.Code == rule.Denied {
				got.Retry = l.Wait(level, cost).Microseconds()
			}
			if got.Code == rule.Pass {
				got.Delay = l.Delay(level, own).Microseconds()
			}
			if op == rule.Refund || taken != rule.UnknownTime {
				got.Delay = rows[0].Delay // a refund or a charge of earlier work has no delay
			}
			require.True(t, got == rows[0],
				"%s %s: op %d of %d gives %+v, the oracle says %+v", r.Kind, r.Rate, op, cost, got, rows[0])
			if !dirty {
				continue // denials and peeks store nothing
			}
			if state, until = l.Store(level, now); state.Empty() {
				until = now + level.Ahead
			}
			if until <= now {
				state = rule.State{}
			}
		}
	})
}

// drawRule returns a random rule of a random kind. Its rate may divide evenly or not.
func drawRule(t *rapid.T) *rule.Rule {
	kind := rule.Kind(rapid.IntRange(int(rule.KindTokenBucket), int(rule.KindSlidingLog)).Draw(t, "kind"))
	rate := rule.Rate{
		Count:  rapid.OneOf(rapid.Int64Range(1, 10), rapid.SampledFrom([]int64{7, 12})).Draw(t, "count"),
		Period: rapid.SampledFrom([]time.Duration{time.Millisecond, 30 * time.Second, time.Minute, time.Hour}).Draw(t, "period"),
	}
	debt := rapid.OneOf(rapid.Just(int64(0)), rapid.Int64Range(1, 30)).Draw(t, "debt")
	r, err := rule.Compile(rule.Spec{ID: "rule", Kind: kind.String(), Rate: rate.String(), Debt: debt})
	require.NoError(t, err)
	return &r
}
