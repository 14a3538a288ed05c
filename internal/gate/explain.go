package gate

import (
	"context"
	"fmt"
	"time"

	"github.com/quotasvc/quotasvc/internal/catalog"
	"github.com/quotasvc/quotasvc/internal/catalog/override"
	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/ratelimit/rule"
)

// LimitExplanation describes the effect of a limit, for the user who configures it.
type LimitExplanation struct {
	// Summary describes the limit in one sentence.
	Summary string

	// Explanation is the limiter's explanation. For kind concurrency only its capacities are set.
	rule.Explanation

	// PeriodMost is the largest number of requests in any interval of the rate's period; 0 for concurrency.
	PeriodMost int64

	// LeaseTTL is how long a lease lasts by default; 0 for the other kinds.
	LeaseTTL time.Duration

	// Override is the override that sets the rate and burst. nil: the limit's own rate and burst are in force.
	Override *override.Override

	// Policy is the behaviour of each of the Replicas instances while Redis is down.
	Policy   rule.BackendPolicy
	Replicas int
}

// ExplainLimit describes the effect of a limit. If tenant and subject are not empty, it uses their overrides. If the
// limit's windows follow the tenant's calendar, it uses that calendar. Errors are *errcode.Error.
func (g *Gate) ExplainLimit(ctx context.Context, l *catalog.Limit, tenant, subject string) (LimitExplanation, error) {
	r, err := compileRule(l)
	if err != nil {
		return LimitExplanation{}, &errcode.Error{Code: errcode.Conflict, Detail: "this version cannot enforce the limit: " + err.Error()}
	}
	var zone *time.Location
	if tenant != "" {
		facts, err := g.tenants.facts(ctx, tenant)
		if err != nil {
			return LimitExplanation{}, err
		}
		if r = g.overridden(ctx, &planRule{limitRule: r}, &facts, subject).limitRule; r.zoneOfTenant {
			zone = facts.zone
		}
	}
	limit := &r.compiled
	replicas := g.limiter.Replicas()
	e := LimitExplanation{Override: r.overridden, Policy: limit.OnBackendError, Replicas: replicas.Count()}
	if limit.Kind == rule.KindConcurrency {
		e.Capacity, e.LeaseTTL, e.MaxTTL = limit.Burst, limit.LeaseTTL(), rule.MaxLeaseTTL+time.Second
		e.Holders, e.Share = replicas.Share(limit.Burst)
		e.Summary = fmt.Sprintf("%d at a time; a lease lasts %s unless it is renewed or names another TTL", limit.Burst, e.LeaseTTL)
		return e, nil
	}
	holders, share := replicas.Share(limit.Burst)
	e.Explanation = limit.Explain(g.now(), zone, r.perSubject || r.perRoute || r.perIP, holders, share)
	e.PeriodMost, e.Summary = limit.InWords(&e.Explanation)
	return e, nil
}
