package gate

import (
	"context"
	"fmt"
	"time"

	"github.com/quotasvc/quotasvc/internal/catalog"
	"github.com/quotasvc/quotasvc/internal/ledger"
	"github.com/quotasvc/quotasvc/internal/ratelimit"
)

// LimitExplanation says what a limit comes to, for people who wonder what they have written.
type LimitExplanation struct {
	// Summary is a sentence.
	Summary string

	// Explanation is the limiter's. Of kind concurrency it has capacities only.
	ratelimit.Explanation

	// PeriodMost is the most that passes in any interval of the rate's period; 0 for concurrency.
	PeriodMost int64

	// LeaseTTL is how long a lease lasts that does not say; 0 for the other kinds.
	LeaseTTL time.Duration

	// Policy is what each of Replicas does while Redis is away.
	Policy   ratelimit.BackendPolicy
	Replicas int
}

// ExplainLimit says what a limit means: for the given tenant, if its windows follow each tenant's calendar and one is given.
// Errors are *ledger.Error.
func (g *Gate) ExplainLimit(ctx context.Context, l *catalog.Limit, tenant string) (LimitExplanation, error) {
	r, err := compileRule(l)
	if err != nil {
		return LimitExplanation{}, &ledger.Error{Code: ledger.CodeConflict, Detail: "this version cannot enforce the limit: " + err.Error()}
	}
	var zone *time.Location
	if r.zoneOfTenant && tenant != "" {
		facts, err := g.terms.of(ctx, tenant)
		if err != nil {
			return LimitExplanation{}, err
		}
		zone = facts.zone
	}
	rule := &r.compiled
	replicas := g.limiter.Replicas()
	e := LimitExplanation{Policy: rule.OnBackendError, Replicas: replicas.Count()}
	if rule.Kind == ratelimit.KindConcurrency {
		e.Capacity, e.LeaseTTL = rule.Burst, rule.LeaseTTL()
		e.Holders, e.Share = replicas.Share(rule.Burst)
		e.MaxTTL = ratelimit.MaxLeaseTTL + time.Second
		e.Summary = fmt.Sprintf("%d at a time; a lease lasts %s unless it is renewed or asks for another time", rule.Burst, e.LeaseTTL)
		return e, nil
	}
	e.Explanation = rule.Explain(g.now(), zone, r.perSubject || r.perRoute || r.perIP, replicas)
	e.PeriodMost, e.Summary = inWords(rule, &e.Explanation)
	return e, nil
}

// inWords is the most that passes in an interval of the rate's period, and what the rule does in a sentence.
func inWords(r *ratelimit.Rule, e *ratelimit.Explanation) (most int64, summary string) {
	switch r.Kind {
	case ratelimit.KindTokenBucket:
		return r.Burst + r.Rate.Count, fmt.Sprintf("%d at once, then %s; at most %d within a second", r.Burst, r.Rate, e.InAnySecond)
	case ratelimit.KindLeakyBucket:
		return r.Burst + r.Rate.Count, fmt.Sprintf("spaced out to %s; up to %d wait for their turn, at most %s", r.Rate, r.Burst, e.LongestWait)
	case ratelimit.KindFixedWindow:
		return 2 * r.Burst, fmt.Sprintf("%d from each start of a window; up to twice as many around it", r.Burst)
	case ratelimit.KindSlidingWindow:
		return 2 * r.Burst, fmt.Sprintf("%s, estimated from two windows: exact for even traffic, up to twice as many for traffic that is not", r.Rate)
	case ratelimit.KindSlidingLog:
		return r.Burst, fmt.Sprintf("never more than %s, wherever the interval begins", r.Rate)
	case ratelimit.KindConcurrency:
	}
	return 0, ""
}
