package gate

import (
	"cmp"
	"context"
	"errors"
	"net/netip"
	"slices"
	"time"

	"github.com/quotasvc/quotasvc/internal/ledger"
	"github.com/quotasvc/quotasvc/internal/ratelimit"
	"github.com/quotasvc/quotasvc/internal/ratelimit/rule"
)

// LeaseRequest asks for one of a concurrency rule's leases: the right to be one of so many at a time.
type LeaseRequest struct {
	Tenant string

	// Rule is a rule of kind concurrency. If others stand in for it, the most specific of those that apply decides.
	Rule string

	// Subject, Route and IP are what rules match and divide their leases by; empty = not named by the caller.
	Subject string
	Route   string
	IP      netip.Addr

	// TTL is how long the lease lasts unless it is renewed; 0 is the rule's own.
	TTL time.Duration

	// Key makes retries harmless, as long as the lease lasts; '' = none.
	Key string

	// DryRun counts and takes nothing.
	DryRun bool
}

// Lease is what became of a request for a lease that was not refused.
type Lease struct {
	// ID is for Renew and Release; '' after a dry run.
	ID string

	// Rule decided; it is not always the one that was asked for.
	Rule string

	ExpiresAt time.Time     // zero after a dry run
	TTL       time.Duration // until then
	Replayed  bool          // it was held already under this key

	// Limit is how many there are at a time, InUse how many are held, this one included. Counted is false if nobody counts:
	// the rule is open and Redis is away, or the caller is exempt from limits.
	Limit, InUse, Remaining int64
	Counted                 bool

	Degraded bool // decided without the shared store
	Verdict  LimitVerdict
}

// Acquire gives a lease. Errors: *RateLimited (all are held), *ReducedCapacity (a closed rule while Redis is away), *Blocked, or
// *ledger.Error: a rule or tenant that does not exist, a suspended tenant, a rule that does not apply.
func (g *Gate) Acquire(ctx context.Context, req LeaseRequest) (Lease, error) {
	out, err := g.acquire(ctx, &req)
	g.metrics.decisions.WithLabelValues("acquire", outcome(err, out.Replayed)).Inc()
	return out, err
}

func (g *Gate) acquire(ctx context.Context, req *LeaseRequest) (Lease, error) {
	ask := Request{Tenant: req.Tenant, Subject: req.Subject, Route: req.Route, IP: req.IP}
	blocked, exempt := g.blocked(&ask)
	if blocked != nil {
		return Lease{}, blocked
	}
	facts, err := g.terms.of(ctx, req.Tenant)
	switch {
	case err != nil:
		return Lease{}, err
	case facts.plan == "":
		return Lease{}, &ledger.Error{Code: ledger.CodeTenantNotFound, Detail: "the tenant does not exist"}
	case facts.suspended:
		return Lease{}, &ledger.Error{Code: ledger.CodeTenantSuspended, Detail: "the tenant is suspended; leases that are held can be renewed and given back"}
	}
	m, err := facts.rules.lease(req.Rule, &ask, facts.plan)
	if err != nil {
		return Lease{}, err
	}
	rule := leaseRule(m, exempt)
	limited := ratelimit.LeaseRequest{Tenant: req.Tenant, Rule: rule, Dimension: m.dimension(&ask), TTL: req.TTL, Key: req.Key}
	do := g.limiter.Acquire
	if req.DryRun {
		do = g.limiter.Count
	}
	said, err := do(ctx, limited)
	if err != nil {
		return Lease{}, leaseError(err, m, "no lease was given, or one that nobody knows of and that ends by itself")
	}
	out := leaseOf(&said, m)
	if !said.Held {
		return out, &RateLimited{Violated: []string{m.compiled.ID}, RetryAfter: max(said.RetryAfter, time.Millisecond), Verdicts: []LimitVerdict{out.Verdict}}
	}
	return out, nil
}

// Renew makes a lease last ttl from now; 0 is its rule's own. A suspended tenant may: it ends what was begun before. Errors:
// *ReducedCapacity, *Blocked, or *ledger.Error with CodeLeaseNotFound for what is not held any more, also because its rule is
// gone.
func (g *Gate) Renew(ctx context.Context, id ratelimit.LeaseID, ttl time.Duration) (Lease, error) {
	out, err := g.renew(ctx, id, ttl)
	g.metrics.decisions.WithLabelValues("renew", outcome(err, false)).Inc()
	return out, err
}

func (g *Gate) renew(ctx context.Context, id ratelimit.LeaseID, ttl time.Duration) (Lease, error) {
	blocked, exempt := g.blocked(&Request{Tenant: id.Tenant})
	if blocked != nil {
		return Lease{}, blocked
	}
	facts, err := g.terms.of(ctx, id.Tenant)
	if err != nil {
		return Lease{}, err
	}
	m := facts.rules.byID[id.Rule]
	if m == nil || m.compiled.Kind != rule.KindConcurrency {
		return Lease{}, errNoLease("its limit is no more")
	}
	said, err := g.limiter.Renew(ctx, id, leaseRule(m, exempt), ttl)
	switch {
	case errors.Is(err, ratelimit.ErrNoLease):
		return Lease{}, errNoLease("it has ended, was given back, or never was")
	case err != nil:
		return Lease{}, leaseError(err, m, "the lease was not renewed; if it is held it ends at its time")
	}
	return leaseOf(&said, m), nil
}

// Release gives a lease back. To give back what is not held is no error. It needs no rule and no tenant: they may be gone. The
// error is a *ledger.Error with CodeUnavailable: the lease ends at its time.
func (g *Gate) Release(ctx context.Context, id ratelimit.LeaseID) error {
	err := g.limiter.Release(ctx, id)
	if err != nil {
		err = unavailable("the lease could not be given back; it ends at its time", err)
	}
	g.metrics.decisions.WithLabelValues("release", outcome(err, false)).Inc()
	return err
}

func errNoLease(why string) error {
	return &ledger.Error{Code: CodeLeaseNotFound, Detail: "there is no such lease: " + why}
}

// leaseRule is the rule as it decides leases. Who is exempt from limits is counted as far as there is room, and never refused:
// what a shadow rule does.
func leaseRule(m *member, exempt bool) *rule.Rule {
	if !exempt {
		return &m.compiled
	}
	r := m.compiled
	r.Shadow = true
	return &r
}

func leaseError(err error, m *member, outcome string) error {
	field, isField := errors.AsType[*rule.FieldError](err)
	switch {
	case isField:
		return &ledger.Error{Code: ledger.CodeInvalidArgument, Field: field.Field, Detail: field.Reason}
	case errors.Is(err, ratelimit.ErrUnavailable) && m.compiled.OnBackendError == rule.BackendClosed:
		return &ReducedCapacity{Violated: []string{m.compiled.ID}, RetryAfter: reducedRetryAfter}
	default:
		return unavailable(outcome, err)
	}
}

func leaseOf(said *ratelimit.Lease, m *member) Lease {
	out := Lease{
		Rule: m.compiled.ID, ExpiresAt: said.ExpiresAt, TTL: said.TTL, Replayed: said.Replayed, Limit: said.Limit, InUse: said.InUse,
		Remaining: said.Remaining, Counted: !said.Unknown, Degraded: said.Degraded,
	}
	if said.Held && !said.ExpiresAt.IsZero() {
		out.ID = said.ID.String()
	}
	if said.Unknown && out.Limit == 0 { // nobody counts
		out.Limit = m.compiled.Burst
	}
	out.Verdict = LimitVerdict{
		Rule: m.compiled.ID, Kind: m.compiled.Kind.String(), Replaces: m.replaces, Allowed: said.Held, Remaining: said.Remaining,
		Limit: out.Limit, Quota: m.compiled.Burst, Concurrent: true, RetryAfter: said.RetryAfter, Shadow: m.compiled.Shadow,
		Degraded: said.Degraded,
	}
	return out
}

// lease finds the rule that decides about a lease of the rule name: that one, or the most specific one that stands in for it
// and applies to req, made by a tenant of plan. The error is a *ledger.Error.
func (s *ruleSet) lease(name string, req *Request, plan string) (*member, error) {
	asked := s.byID[name]
	if asked == nil {
		return nil, &ledger.Error{Code: ledger.CodeNotFound, Detail: "the tenant has no limit of this name"}
	}
	candidates := []*member{asked}
	if asked.root != nil {
		for _, m := range s.byID {
			if m.root == asked.root && m.standsInFor(asked) {
				candidates = append(candidates, m)
			}
		}
	}
	candidates = slices.DeleteFunc(candidates, func(m *member) bool {
		return m.compiled.Kind != rule.KindConcurrency || !m.appliesTo(req, plan)
	})
	if candidates = standIns(candidates); len(candidates) == 0 {
		return nil, asked.whyNoLease(req)
	}
	return slices.MinFunc(candidates, func(a, b *member) int { return cmp.Compare(a.order, b.order) }), nil
}

// whyNoLease says why a rule does not decide about a lease.
func (m *member) whyNoLease(req *Request) error {
	lacks := func(field string) error {
		return &ledger.Error{Code: ledger.CodeInvalidArgument, Field: field, Detail: "is required: the limit counts each of them apart"}
	}
	switch {
	case m.compiled.Kind != rule.KindConcurrency:
		return &ledger.Error{
			Code: ledger.CodeInvalidArgument, Field: "rule",
			Detail: "must be of kind concurrency; it is of kind " + m.compiled.Kind.String() + ", which check and consume ask",
		}
	case m.perSubject && req.Subject == "":
		return lacks("subject")
	case m.perRoute && req.Route == "":
		return lacks("route")
	case m.perIP && !req.IP.IsValid():
		return lacks("ip")
	default:
		return &ledger.Error{Code: ledger.CodeNotFound, Detail: "the limit is not about this tenant and route: see its match"}
	}
}
