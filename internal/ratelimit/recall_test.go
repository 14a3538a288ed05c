package ratelimit

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
	"github.com/quotasvc/quotasvc/internal/ratelimit/rule"
)

// TestRecall_Log_RetryAfterIsRediss: a denial from memory has the RetryAfter of Redis's reply. For a sliding log this
// process cannot compute the RetryAfter. It knows the number of taken tokens and when the last token comes back, but
// not when the next token comes back.
func TestRecall_Log_RetryAfterIsRediss(t *testing.T) {
	t.Parallel()
	var clock testClock // of Redis and of this process
	clock.us.Store(worldStart)
	l := patientLimiter(t, patientClient(t, testenv.Redis(t)), settings{redisNow: clock.now, Now: func() time.Time { return time.UnixMicro(clock.now()) }})
	log := compile(t, rule.Spec{Kind: "sliding_log", Rate: "3/h"})
	ask := func(cost int64) Request { return Request{Tenant: "acme", Charges: []Charge{{Rule: log, Cost: cost}}} }

	const apart = 200 * time.Millisecond
	mustConsume(t, l, ask(1))
	clock.advance(apart)
	mustConsume(t, l, ask(2))

	said := mustConsume(t, l, ask(1)).Verdicts[0].RetryAfter
	assert.True(t, said == time.Hour-apart, "redis said %s", said)
	for range 20 {
		clock.advance(time.Millisecond)
		said -= time.Millisecond
		if d := mustPeek(t, l, ask(1)); d.Mode != ModeMemo || d.Allowed || d.Verdicts[0].RetryAfter != said {
			t.Fatalf("%+v after redis said %s", d, said)
		}
	}
	// For a larger cost than the denied cost, only Redis can compute RetryAfter.
	if two := mustConsume(t, l, ask(2)); two.Mode != ModeRedis || two.Verdicts[0].RetryAfter != said+apart {
		t.Errorf("two tokens: %+v; the first comes back after %s, the second %s later", two, said, apart)
	}
}

// TestRecall_DeniesForTheSameRulesAsRedis: if the local copy of a rule's bucket would deny, but Redis would not, the
// rule's verdict must not be a denial.
func TestRecall_DeniesForTheSameRulesAsRedis(t *testing.T) {
	client := parallelClient(t)
	l, other := patientLimiter(t, client, settings{}), patientLimiter(t, client, settings{})
	for _, spec := range []rule.Spec{{Kind: "sliding_log", Rate: "2/h"}, {Kind: "token_bucket", Rate: "2/day"}} {
		spec.ID = "guess-" + spec.Kind
		guess := Charge{Rule: compile(t, spec)}
		empty := Charge{Rule: compile(t, rule.Spec{ID: "empty", Rate: "1/day", Burst: 2})}
		req := Request{Tenant: spec.Kind, Charges: []Charge{guess, empty}}
		for range 3 {
			mustConsume(t, l, req)
		}
		// Another process refunds a charge of guess. So Redis would no longer deny guess, but the local copy still
		// would.
		testenv.Must(t).Get(other.Refund(t.Context(), Request{Tenant: req.Tenant, Charges: []Charge{guess}}))
		q := queryFor(t, req.Tenant, guess)
		l.denials.forget(q.charges[0].key)
		d := mustConsume(t, l, req)
		assert.True(t, !d.Allowed && d.Verdicts[0].Allowed && !d.Verdicts[1].Allowed, "%+v; only %q denies", d, "empty")
	}
}
