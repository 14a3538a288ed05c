package gate

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"time"

	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/ratelimit"
	"github.com/quotasvc/quotasvc/internal/ratelimit/rule"
	"github.com/quotasvc/quotasvc/internal/report/denial"
)

// LeaseRequest is a request for a lease of a concurrency rule. Such a rule bounds the number of leases held at the
// same time.
type LeaseRequest struct {
	Tenant string

	// Rule is the id of a rule of kind concurrency. If other applicable rules replace it, the most specific of them
	// decides.
	Rule string

	// Subject, Route and IP are compared with rules, and are dimensions of a rule: leases are counted separately for
	// each combination. Empty: the caller did not name them.
	Subject string
	Route   string
	IP      netip.Addr

	// Forwarded is the method and URI of the request that a gateway forwards, as in Request; empty: no gateway.
	Forwarded string

	// TTL is the time after which the lease ends unless it is renewed; 0: the TTL of the rule.
	TTL time.Duration

	// Key makes retries safe while the lease is held: the same key gets the same lease. Empty: each request takes a
	// lease.
	Key string

	// DryRun makes Acquire count the leases without taking one.
	DryRun bool
}

// Lease is the answer to Acquire or Renew.
type Lease struct {
	// ID is the argument of ParseLease. It is empty after a dry run.
	ID string

	// Rule is the rule that decided: the rule of the request, or a rule that replaces it.
	Rule string

	ExpiresAt time.Time     // zero after a dry run
	TTL       time.Duration // the time until ExpiresAt
	Replayed  bool          // the lease was already held under this key

	// Limit is the largest number of leases at a time. InUse is the number of held leases, including this lease.
	// Counted is false if leases are not counted: the rule is open and Redis is down, or a block exempts the caller
	// from limits.
	Limit, InUse, Remaining int64
	Counted                 bool

	Degraded bool // decided without Redis
	Verdict  LimitVerdict
}

// Acquire takes a lease. The error is *RateLimited if all leases are held, *ReducedCapacity for a closed rule while
// Redis is down, or *Blocked. It is *errcode.Error if the rule or tenant does not exist, the tenant is suspended, or
// the rule does not apply to the request.
func (g *Gate) Acquire(ctx context.Context, req LeaseRequest) (Lease, error) {
	out, err := withNewest(ctx, g, func() (Lease, error) { return g.acquire(ctx, &req) })
	g.metrics.decisions.WithLabelValues("acquire", decisionLabel(err, out.Replayed)).Inc()
	return out, err
}

func (g *Gate) acquire(ctx context.Context, req *LeaseRequest) (Lease, error) {
	match := Request{Tenant: req.Tenant, Subject: req.Subject, Route: req.Route, IP: req.IP, Forwarded: req.Forwarded}
	blocked, exempt := g.blocked(&match)
	if blocked != nil {
		return Lease{}, blocked
	}
	facts, err := g.tenants.facts(ctx, req.Tenant)
	switch {
	case err != nil:
		return Lease{}, err
	case facts.plan == "":
		return Lease{}, &errcode.Error{Code: errcode.TenantNotFound, Detail: "the tenant does not exist"}
	case facts.suspended:
		return Lease{}, &errcode.Error{Code: errcode.TenantSuspended, Detail: "the tenant is suspended; it can release the leases it holds"}
	}
	p, err := facts.rules.lease(req.Rule, &match, facts.plan)
	if err != nil {
		return Lease{}, err
	}
	p = g.overridden(ctx, p, &facts, req.Subject)
	rule := leaseRule(p, exempt)
	ask := ratelimit.LeaseRequest{
		Tenant: req.Tenant, Rule: rule, Dimension: p.dimension(&match), Subject: req.Subject, Address: string(req.IP.AsSlice()),
		TTL: req.TTL, Key: req.Key,
	}
	do := g.limiter.Acquire
	if req.DryRun {
		do = g.limiter.Count
	}
	lease, err := do(ctx, ask)
	if err != nil {
		return Lease{}, leaseError(err, p, "no lease was returned; if one was taken, it expires by itself")
	}
	out := g.leaseOf(&lease, p)
	g.noteNames(p, ask.Dimension, &match)
	if p.compiled.Shadow && !exempt && lease.Unknown && lease.Limit > 0 { // no lease was free
		g.denials.NoteShadow(&denial.Shadow{Tenant: req.Tenant, Rule: p.compiled.ID, Denies: true})
	}
	if !lease.Held {
		return out, &RateLimited{Violated: []string{p.compiled.ID}, RetryAfter: max(lease.RetryAfter, time.Millisecond), Verdicts: []LimitVerdict{out.Verdict}}
	}
	return out, nil
}

// ParseLease returns the lease that an id identifies. If no instance with the same IDKey has issued the id, the error
// is an *errcode.Error with CodeLeaseNotFound.
func (g *Gate) ParseLease(id string) (ratelimit.LeaseID, error) {
	lease, err := g.leaseIDs.Parse(id, time.Now())
	if err != nil {
		return ratelimit.LeaseID{}, errNoLease("this is no id of a lease")
	}
	return lease, nil
}

// Renew sets the end of a lease to the time `ttl` after now. If ttl is 0, Renew uses the TTL of the rule. The error
// is *ReducedCapacity, *Blocked or *errcode.Error. If the lease is no longer held, or its rule no longer exists, the
// code is CodeLeaseNotFound. If the holder is blocked, or the tenant is suspended or does not exist, Renew ends the
// lease.
func (g *Gate) Renew(ctx context.Context, id ratelimit.LeaseID, ttl time.Duration) (Lease, error) {
	out, err := g.renew(ctx, id, ttl)
	g.metrics.decisions.WithLabelValues("renew", decisionLabel(err, false)).Inc()
	return out, err
}

func (g *Gate) renew(ctx context.Context, id ratelimit.LeaseID, ttl time.Duration) (Lease, error) {
	facts, exempt, err := g.mayHold(ctx, &id)
	if err != nil {
		if CodeOf(err) != errcode.Unavailable {
			_ = g.release(ctx, id) // if this fails, the lease ends when it expires
		}
		return Lease{}, err
	}
	p := facts.rules.rule(id.Rule)
	if p == nil || p.compiled.Kind != rule.KindConcurrency {
		return Lease{}, errNoLease("its limit was deleted")
	}
	p = g.overridden(ctx, p, &facts, id.Subject)
	lease, err := g.limiter.Renew(ctx, id, leaseRule(p, exempt), ttl)
	switch {
	case errors.Is(err, ratelimit.ErrNoLease):
		return Lease{}, errNoLease("it has expired, was released, or never existed")
	case err != nil:
		return Lease{}, leaseError(err, p, "the lease was not renewed; if it is held it expires at its expires_at")
	}
	return g.leaseOf(&lease, p), nil
}

// mayHold fails if a holder must not keep its lease. Otherwise it returns the facts about the holder's tenant, and
// whether a block exempts the holder from limits.
func (g *Gate) mayHold(ctx context.Context, id *ratelimit.LeaseID) (facts tenantFacts, exempt bool, err error) {
	holder := Request{Tenant: id.Tenant, Subject: id.Subject}
	holder.IP, _ = netip.AddrFromSlice([]byte(id.Address)) // invalid if the holder named no address
	blocked, exempt := g.blocked(&holder)
	if blocked != nil {
		return tenantFacts{}, false, blocked
	}
	facts, err = g.tenants.facts(ctx, id.Tenant)
	switch {
	case err != nil:
	case facts.unknown:
		err = noTenant(id.Tenant)
	case facts.suspended:
		err = &errcode.Error{Code: errcode.TenantSuspended, Detail: "the tenant is suspended; the lease has ended"}
	}
	return facts, exempt, err
}

// Release ends a lease. If the lease is not held, Release succeeds, even if its rule or tenant no longer exists. The
// error is an *errcode.Error with errcode.Unavailable. After an error the lease ends when it expires.
func (g *Gate) Release(ctx context.Context, id ratelimit.LeaseID) error {
	err := g.release(ctx, id)
	if err != nil {
		err = unavailable("the lease could not be released; it expires at its expires_at", err)
	}
	g.metrics.decisions.WithLabelValues("release", decisionLabel(err, false)).Inc()
	return err
}

func (g *Gate) release(ctx context.Context, id ratelimit.LeaseID) error {
	if p := g.tenants.rules().general.rule(id.Rule); p != nil {
		id.Metric = p.compiled.Metric
	}
	return g.limiter.Release(ctx, id)
}

func errNoLease(why string) error {
	return &errcode.Error{Code: CodeLeaseNotFound, Detail: "no such lease: " + why}
}

// leaseRule returns the rule that decides a lease. For a caller that is exempt from limits, it returns a copy of the
// rule in shadow mode. In shadow mode a lease is never refused. It is counted only if fewer leases than the limit are
// held.
func leaseRule(p *planRule, exempt bool) *rule.Rule {
	if !exempt {
		return &p.compiled
	}
	r := p.compiled
	r.Shadow = true
	return &r
}

func leaseError(err error, p *planRule, outcome string) error {
	field, isField := errors.AsType[*rule.FieldError](err)
	switch {
	case isField:
		return errcode.Errorf(errcode.InvalidArgument, field.Field, "%s", field.Reason)
	case errors.Is(err, ratelimit.ErrUnavailable) && p.compiled.OnBackendError == rule.BackendClosed:
		return &ReducedCapacity{Violated: []string{p.compiled.ID}, RetryAfter: reducedRetryAfter}
	default:
		return unavailable(outcome, err)
	}
}

func (g *Gate) leaseOf(lease *ratelimit.Lease, p *planRule) Lease {
	out := Lease{
		Rule: p.compiled.ID, ExpiresAt: lease.ExpiresAt, TTL: lease.TTL, Replayed: lease.Replayed, Limit: lease.Limit, InUse: lease.InUse,
		Remaining: lease.Remaining, Counted: !lease.Unknown, Degraded: lease.Degraded,
	}
	if lease.Held && !lease.ExpiresAt.IsZero() {
		out.ID = g.leaseIDs.Text(lease.ID)
	}
	if lease.Unknown && out.Limit == 0 { // leases are not counted
		out.Limit = p.compiled.Burst
	}
	out.Verdict = LimitVerdict{
		Rule: p.compiled.ID, Kind: p.compiled.Kind.String(), Replaces: p.replaces, Allowed: lease.Held, Remaining: lease.Remaining,
		Limit: out.Limit, Policy: p.policy, Concurrent: true, RetryAfter: lease.RetryAfter, Shadow: p.compiled.Shadow,
		Degraded: lease.Degraded,
	}
	return out
}

// lease returns the rule that decides a lease for req from a tenant of plan. It is the rule with the given name, or
// the most specific applicable rule that replaces it. The error is an *errcode.Error.
func (s *ruleSet) lease(name string, req *Request, plan string) (*planRule, error) {
	named := s.rule(name)
	if named == nil {
		return nil, &errcode.Error{Code: errcode.NotFound, Detail: "the tenant has no limit of this name"}
	}
	candidates := s.general.leases.find(make([]*planRule, 0, fewRules), req, plan)
	if s.own != nil {
		candidates = s.own.leases.find(s.unmasked(candidates), req, plan)
	}
	candidates = slices.DeleteFunc(candidates, func(p *planRule) bool { return p != named && !s.supersedes(p.link, named.link) })
	if candidates = s.dropReplaced(candidates); len(candidates) == 0 {
		return nil, named.leaseFault(req)
	}
	return slices.MinFunc(candidates, compareOrder), nil
}

// leaseFault returns the error for req if neither p nor a rule that replaces p applies to req.
func (p *planRule) leaseFault(req *Request) error {
	lacks := func(field string) error {
		return errcode.Errorf(errcode.InvalidArgument, field, "is required: the limit counts each one separately")
	}
	switch {
	case p.compiled.Kind != rule.KindConcurrency:
		return errcode.Errorf(errcode.InvalidArgument, "rule",
			"must be of kind concurrency; it is of kind %s, which check and consume use", p.compiled.Kind)
	case p.perSubject && req.Subject == "":
		return lacks("subject")
	case p.perRoute && req.Route == "":
		return lacks("route")
	case p.perIP && !req.IP.IsValid():
		return lacks("ip")
	default:
		return &errcode.Error{Code: errcode.NotFound, Detail: "the limit does not apply to this tenant and route: see its match"}
	}
}
