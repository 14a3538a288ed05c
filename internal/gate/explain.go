package gate

import (
	"context"
	"fmt"
	"time"

	"github.com/quotasvc/quotasvc/internal/catalog"
	"github.com/quotasvc/quotasvc/internal/ledger"
	"github.com/quotasvc/quotasvc/internal/ratelimit/rule"
)

// LimitExplanation says what a limit comes to, for people who wonder what they have written.
type LimitExplanation struct {
	// Summary is a sentence.
	Summary string

	// Explanation is the limiter's. Of kind concurrency it has capacities only.
	rule.Explanation

	// PeriodMost is the most that passes in any interval of the rate's period; 0 for concurrency.
	PeriodMost int64

	// LeaseTTL is how long a lease lasts that does not say; 0 for the other kinds.
	LeaseTTL time.Duration

	// Policy is what each of Replicas does while Redis is away.
	Policy   rule.BackendPolicy
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
	limit := &r.compiled
	replicas := g.limiter.Replicas()
	e := LimitExplanation{Policy: limit.OnBackendError, Replicas: replicas.Count()}
	if limit.Kind == rule.KindConcurrency {
		e.Capacity, e.LeaseTTL = limit.Burst, limit.LeaseTTL()
		e.Holders, e.Share = replicas.Share(limit.Burst)
		e.MaxTTL = rule.MaxLeaseTTL + time.Second
		e.Summary = fmt.Sprintf("%d at a time; a lease lasts %s unless it is renewed or asks for another time", limit.Burst, e.LeaseTTL)
		return e, nil
	}
	holders, share := replicas.Share(limit.Burst)
	e.Explanation = limit.Explain(g.now(), zone, r.perSubject || r.perRoute || r.perIP, holders, share)
	e.PeriodMost, e.Summary = inWords(limit, &e.Explanation)
	return e, nil
}

// inWords is the most that passes in an interval of the rate's period, and what the rule does in a sentence.
func inWords(r *rule.Rule, e *rule.Explanation) (most int64, summary string) {
	switch r.Kind {
	case rule.KindTokenBucket:
		return r.Burst + r.Rate.Count, fmt.Sprintf("%d at once, then %s; at most %d within a second", r.Burst, r.Rate, e.InAnySecond)
	case rule.KindLeakyBucket:
		return r.Burst + r.Rate.Count, fmt.Sprintf("spaced out to %s; up to %d wait for their turn, at most %s", r.Rate, r.Burst, e.LongestWait)
	case rule.KindFixedWindow:
		return 2 * r.Burst, fmt.Sprintf("%d from each start of a window; up to twice as many around it", r.Burst)
	case rule.KindSlidingWindow:
		return 2 * r.Burst, fmt.Sprintf("%s, estimated from two windows: exact for even traffic, up to twice as many for traffic that is not", r.Rate)
	case rule.KindSlidingLog:
		return r.Burst, fmt.Sprintf("never more than %s, wherever the interval begins", r.Rate)
	case rule.KindConcurrency:
	}
	return 0, ""
}
