package gate

import (
	"context"
	"errors"
	"time"

	"github.com/quotasvc/quotasvc/internal/ratelimit"
	"github.com/quotasvc/quotasvc/internal/ratelimit/rule"
)

// nobody stands for the tenant of a bucket that all tenants share.
const nobody = "nobody"

// LimitState is the state of one bucket.
type LimitState struct {
	Kind string // as in the catalogue

	// Remaining is the number of whole tokens, or of free leases; Limit is the bucket's capacity.
	Remaining, Limit int64

	// Owed is the number of tokens below zero, rounded up.
	Owed int64

	// Next is the time until one more token is available, Full the time until the bucket is full; both are zero for leases, whose holders
	// decide.
	Next, Full time.Duration

	// Banned is the time until the bucket's ban ends; zero if it is not banned.
	Banned time.Duration

	Degraded bool // Redis is away: this is what the instance knows of its share
}

// LimitState returns the state of a bucket, and charges nothing. Errors are *ledger.Error.
func (g *Gate) LimitState(ctx context.Context, req BucketRequest) (LimitState, error) {
	facts, p, dimension, err := g.bucket(ctx, &req)
	switch {
	case err != nil:
		return LimitState{}, err
	case req.Tenant == "":
		req.Tenant = nobody
	case facts.unknown:
		return LimitState{}, noTenant(req.Tenant)
	}
	out := LimitState{Kind: p.compiled.Kind.String(), Limit: p.compiled.Burst}
	if p.compiled.Kind == rule.KindConcurrency {
		lease, err := g.limiter.Count(ctx, ratelimit.LeaseRequest{Tenant: req.Tenant, Rule: &p.compiled, Dimension: dimension})
		if err != nil || lease.Unknown {
			return LimitState{}, unavailable("the leases could not be counted", err)
		}
		out.Remaining, out.Limit, out.Degraded = lease.Remaining, lease.Limit, lease.Degraded
		return out, nil
	}
	charge := ratelimit.Charge{Rule: &p.compiled, Dimension: dimension, Cost: 1}
	if p.zoneOfTenant {
		charge.Zone = facts.zone
	}
	decision, err := g.limiter.Peek(ctx, ratelimit.Request{Tenant: req.Tenant, Charges: []ratelimit.Charge{charge}, Fresh: true})
	if err == nil && decision.Verdicts[0].Unknown {
		err = errors.New("the limit is open while Redis is away")
	}
	if err != nil {
		return LimitState{}, unavailable("the bucket could not be read", err)
	}
	v := &decision.Verdicts[0]
	out.Remaining, out.Owed, out.Limit, out.Next, out.Full, out.Banned, out.Degraded = v.Remaining, v.Owed, v.Limit, v.Next, v.Reset, v.Banned, decision.Degraded
	return out, nil
}
