package ratelimit

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
	"github.com/quotasvc/quotasvc/internal/ratelimit/replica"
	"github.com/quotasvc/quotasvc/internal/ratelimit/rule"
)

func mustLate(t tester, l *Limiter, req Request) Decision {
	t.Helper()
	d, err := l.ConsumeLate(context.Background(), req)
	require.True(t, err == nil && d.Allowed, "a charge after the fact: %+v, %v", d, err)
	return d
}

// bothStores returns a client of Redis, and a nil client, which means local mode.
func bothStores(t *testing.T) map[string]redis.UniversalClient {
	t.Helper()
	return map[string]redis.UniversalClient{"redis": patientClient(t, testenv.Redis(t)), "local": nil}
}

// TestConsumeLate_TakesTheBucketToMinusItsDebt uses a bucket of 10 tokens with a debt of 5. Its rate is one token per
// minute.
func TestConsumeLate_TakesTheBucketToMinusItsDebt(t *testing.T) {
	t.Parallel()
	for where, client := range bothStores(t) {
		for _, kind := range []string{"token_bucket", "leaky_bucket"} {
			l := patientLimiter(t, client, settings{})
			r := compile(t, rule.Spec{ID: kind, Kind: kind, Rate: "1/min", Burst: 10, Debt: 5})
			one := requestOf(Charge{Rule: r})
			v := mustLate(t, l, requestOf(Charge{Rule: r, Cost: 12})).Verdicts[0]
			assert.True(t, v.Charged == 12 && v.Remaining == 0 && v.Owed == 2, "%s, %s: 12 of 10: %+v", where, kind, v)
			wait := mustConsumeNot(t, l, one).RetryAfter
			assert.True(t, wait > 2*time.Minute && wait <= 3*time.Minute,
				"%s, %s: owes 2, passes in %s, want 3 minutes", where, kind, wait)
			late := mustLate(t, l, requestOf(Charge{Rule: r, Cost: 1000}))
			v = late.Verdicts[0]
			assert.True(t, v.Charged == 3 && v.Owed == 5, "%s, %s: the rest of the debt: %+v", where, kind, v)
			// The remembered denial is not used, because its RetryAfter would be too short now.
			v = mustConsumeNot(t, l, one)
			assert.True(t, v.RetryAfter > 5*time.Minute && v.RetryAfter <= 6*time.Minute && v.Remaining == 0 &&
				v.Mode != ModeMemo, "%s, %s: owes 5: %+v, want 6 minutes", where, kind, v)
			assert.Zero(t, mustLate(t, l, one).Verdicts[0].Charged, "%s, %s: charged beyond the debt", where, kind)
			mustRefund(t, l, late, requestOf(Charge{Rule: r, Cost: 1000}))
			assert.EqualValues(t, 2, mustPeek(t, l, one).Verdicts[0].Owed, "%s, %s: owed after a refund", where, kind)
		}
	}
}

// mustConsumeNot returns the verdict of the first rule of a denied request.
func mustConsumeNot(t *testing.T, l *Limiter, req Request) Verdict {
	t.Helper()
	d, err := l.Consume(t.Context(), req)
	require.True(t, err == nil && !d.Allowed, "%+v, %v; want a denial", d, err)
	return d.Verdicts[0]
}

// TestConsumeLate_WithoutDebt_TakesWhatIsLeft: if a rule has no debt, ConsumeLate takes only the remaining tokens.
// The request charges a rule of each kind.
func TestConsumeLate_WithoutDebt_TakesWhatIsLeft(t *testing.T) {
	t.Parallel()
	for where, client := range bothStores(t) {
		l := patientLimiter(t, client, settings{})
		req := Request{Tenant: "acme"}
		for i, kind := range kinds() {
			req.Charges = append(req.Charges, Charge{Rule: slowRule(t, kind, int64(10+i)), Cost: 100})
		}
		mustLate(t, l, Request{Tenant: "acme", Charges: []Charge{{Rule: req.Charges[0].Rule, Cost: 4}}})
		d := mustLate(t, l, req)
		for i, v := range d.Verdicts {
			want := v.Limit
			if i == 0 {
				want -= 4
			}
			assert.True(t, v.Charged == want && v.Remaining == 0 && v.Owed == 0,
				"%s: %+v, want %d taken", where, v, want)
		}
		mustRefund(t, l, d, req)
		for i, v := range mustPeek(t, l, req).Verdicts {
			if want := d.Verdicts[i].Charged; v.Remaining != want {
				t.Errorf("%s, %s: %d left after the refund, want %d", where, v.Rule.Kind, v.Remaining, want)
			}
		}
	}
}

// TestConsumeLate_DebtChanges_NothingIsForgiven: if a rule's Debt is removed or raised, the number of owed tokens
// stays the same.
func TestConsumeLate_DebtChanges_NothingIsForgiven(t *testing.T) {
	t.Parallel()
	for where, client := range bothStores(t) {
		for _, kind := range kinds() {
			l := patientLimiter(t, client, settings{})
			with := func(debt int64) *rule.Rule {
				rate := rule.Rate{Count: 10, Period: 31 * 24 * time.Hour}
				return compile(t, rule.Spec{ID: kind.String(), Kind: kind.String(), Rate: rate.String(), Debt: debt})
			}
			mustLate(t, l, requestOf(Charge{Rule: with(6), Cost: 16}))
			wait := mustPeek(t, l, requestOf(Charge{Rule: with(6)})).Verdicts[0].RetryAfter
			for _, debt := range []int64{0, 3, 20} {
				req := requestOf(Charge{Rule: with(debt)})
				v := mustConsumeNot(t, l, req)
				assert.True(t, v.Owed == 6 && v.RetryAfter <= wait && v.RetryAfter >= wait-time.Minute,
					"%s, %s: owes %d, passes in %s under a debt of %d; want 6 and %s", where, kind, v.Owed, v.RetryAfter, debt, wait)
				late := mustLate(t, l, req).Verdicts[0].Charged
				assert.False(t, late > 0 && debt < 6, "%s, %s: %d charged beyond a debt of %d", where, kind, late, debt)
			}
		}
	}
}

// TestConsumeLate_Outage_DebtIsKept: during an outage this process continues from the tokens owed in Redis, with its
// share of the capacity and of the debt. If Redis comes back empty, the owed tokens and this process's own charges
// are restored.
func TestConsumeLate_Outage_DebtIsKept(t *testing.T) {
	t.Parallel()
	server := testenv.RedisPrivate(t)
	two := replica.Known(1, []uint64{2}, 0)
	l := patientLimiter(t, patientClient(t, server.Options()), settings{Replicas: func() *replica.Set { return two }})
	var reqs []Request
	for _, kind := range []string{"token_bucket", "leaky_bucket", "fixed_window", "sliding_window"} {
		reqs = append(reqs, requestOf(Charge{Rule: compile(t, rule.Spec{ID: kind, Kind: kind, Rate: "100/31day", Debt: 40}), Cost: 120}))
	}
	for _, req := range reqs {
		mustLate(t, l, req)
	}
	server.Kill()
	for _, req := range reqs {
		kind := req.Charges[0].Rule.Kind
		testenv.Eventually(t, func() bool {
			d, err := l.Peek(t.Context(), req)
			return err == nil && d.Degraded
		}, "an outage")
		// In Redis 20 tokens of a debt of 40 are owed. This process has half of both: 10 tokens of a debt of 20.
		v := mustLate(t, l, req).Verdicts[0]
		assert.True(t, v.Charged == 10 && v.Owed == 20 && v.Limit == 50, "%s: %+v, want 10 taken here", kind, v)
		req.Charges[0].Cost = 1
		d, err := l.Consume(t.Context(), req)
		assert.True(t, err == nil && !d.Allowed && d.Degraded, "%s: passes while it owes: %+v, %v", kind, d, err)
	}
	server.Start()
	for _, req := range reqs {
		var v Verdict
		testenv.Eventually(t, func() bool {
			d, err := l.Peek(t.Context(), req)
			v = d.Verdicts[0]
			return err == nil && !d.Degraded
		}, "redis")
		assert.True(t, v.Owed == 30 && !v.Allowed,
			"%s: owes %d after the loss, want 20 from before and 10 of the outage", v.Rule.Kind, v.Owed)
	}
}
