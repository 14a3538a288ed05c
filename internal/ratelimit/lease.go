package ratelimit

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/quotasvc/quotasvc/internal/kit/bound"
	"github.com/quotasvc/quotasvc/internal/ratelimit/rule"
	"github.com/quotasvc/quotasvc/internal/store/redisstore"
)

// ErrNoLease means that the lease does not exist: it has ended, was released, or was never granted.
var ErrNoLease = errors.New("ratelimit: no such lease")

// leaseRetryMax is the longest RetryAfter of a denied lease request. The time at which the next lease expires is
// known, but holders usually release their leases earlier, and waiting callers are not notified.
const leaseRetryMax = 5 * time.Second

// LeaseRequest is a request for one lease of a concurrency rule.
type LeaseRequest struct {
	Tenant string
	// Rule is a compiled rule of KindConcurrency.
	Rule *rule.Rule
	// Dimension has the same meaning as in a Charge.
	Dimension string
	// Subject and Address identify the holder in the lease's id. Address is 4 or 16 bytes. Both may be empty.
	Subject, Address string
	// TTL is the time for which the lease lasts if it is not renewed, rule.MinLeaseTTL to rule.MaxLeaseTTL; 0 is the
	// rule's LeaseTTL.
	TTL time.Duration
	// Key makes retries safe. A request with the same tenant, rule, dimension and key gets the same lease, as long as
	// that lease lasts. An empty Key means that a retry gets another lease.
	Key string
}

// Lease is the result of a lease request.
type Lease struct {
	// ID is set if the lease is held.
	ID   LeaseID
	Rule *rule.Rule
	// Held means that the caller has the lease until ExpiresAt. In the result of Count it means that Acquire would
	// grant a lease.
	Held      bool
	ExpiresAt time.Time
	// TTL is the time left until ExpiresAt, by the clock that decided (Redis's or this process's).
	TTL time.Duration
	// Replayed means that the lease already existed under the request's key.
	Replayed bool
	// Unknown means that this lease is not counted. Either Redis is away and the rule's policy is open, or a shadow
	// rule would have denied the lease. Under the policy open, Limit, InUse and Remaining have no meaning.
	Unknown bool
	// Limit is the rule's capacity. In a degraded result it is this replica's portion of the capacity.
	Limit int64
	// InUse is the number of held leases, including this lease. It may be above Limit if the rule's Burst was
	// lowered. Remaining is never below 0.
	InUse, Remaining int64
	// RetryAfter is the time to wait after a denial: the time until the next lease expires, but at most
	// leaseRetryMax.
	RetryAfter time.Duration

	Mode     Mode
	Degraded bool
}

// Acquire grants one of the rule's leases if fewer than its capacity are held. If no lease is free, Held is false,
// which is not an error. A shadow rule always grants a lease. Acquire returns within the budget. While Redis is away,
// the rule's OnBackendError decides. Errors are *rule.FieldError, ErrUnavailable, ErrStopped, and the error of ctx.
// ErrUnavailable means that a rule is closed while Redis is away, or that the process would hold too many leases.
// After an error other than FieldError it is unknown whether a lease was granted. A retry with the same Key is safe,
// and a lease that nobody renews ends at its ExpiresAt.
func (l *Limiter) Acquire(ctx context.Context, req LeaseRequest) (Lease, error) {
	id, ttl, err := req.check()
	if err != nil {
		return Lease{}, err
	}
	return l.lease(ctx, leaseCall{op: leaseAcquire, id: id, rule: req.Rule, ttl: ttl})
}

// Count returns a Lease whose InUse is the number of the rule's held leases. It grants no lease.
func (l *Limiter) Count(ctx context.Context, req LeaseRequest) (Lease, error) {
	id, _, err := req.check()
	if err != nil {
		return Lease{}, err
	}
	return l.lease(ctx, leaseCall{op: leaseCount, id: id, rule: req.Rule})
}

// Renew makes a lease last for ttl from now. So the lease may end earlier than before. A ttl of 0 is the rule's
// LeaseTTL. r is the current version of the lease's rule, which the caller looks up. Renew returns ErrNoLease if the
// lease has ended. The other errors are the errors of Acquire. After ErrUnavailable the lease may still be held.
//
// A lease may be granted or renewed while Redis is away. The process that has done so brings it to Redis afterwards. If
// this process has ended, the lease's first renewal does it, if the rule has room.
func (l *Limiter) Renew(ctx context.Context, id LeaseID, r *rule.Rule, ttl time.Duration) (Lease, error) {
	if err := checkLeaseRule(r); err != nil {
		return Lease{}, err
	}
	if r.ID != id.Rule || r.Shared != id.shared {
		return Lease{}, fmt.Errorf("%w: it is of another rule", ErrNoLease)
	}
	ttl, err := r.LeaseTTLFor(ttl)
	if err != nil {
		return Lease{}, err
	}
	return l.lease(ctx, leaseCall{op: leaseRenew, id: id, rule: r, ttl: ttl})
}

// Release ends a lease. It returns no error if the lease is no longer held. It returns ErrUnavailable if Redis did
// not answer. The lease then ends at its ExpiresAt.
func (l *Limiter) Release(ctx context.Context, id LeaseID) error {
	if l.stopped.Load() {
		return ErrStopped
	}
	c := leaseCall{op: leaseRelease, id: id}
	own := l.leases.table.decide(&c, l.micros(), 0).code == leaseDone
	if l.store == nil {
		l.metrics.countLease(&c, released(own), ModeLocal)
		return nil
	}
	r, err := l.askLease(ctx, c)
	switch {
	case errors.Is(err, redisstore.ErrAway) && id.away && own:
		l.metrics.countLease(&c, released(own), ModeLocal)
		return nil
	case errors.Is(err, redisstore.ErrAway):
		l.metrics.countLease(&c, "error", ModeRedis)
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	case err != nil:
		return err
	}
	l.metrics.countLease(&c, released(r.code == leaseDone), ModeRedis)
	return nil
}

// released returns the metric label of a release's outcome.
func released(held bool) string {
	if held {
		return "done"
	}
	return "gone"
}

// lease decides a call of Acquire, Count or Renew.
func (l *Limiter) lease(ctx context.Context, c leaseCall) (Lease, error) {
	if l.stopped.Load() {
		return Lease{}, ErrStopped
	}
	out, err := l.decideLease(ctx, &c)
	if err == nil {
		l.metrics.answered(&c, &out)
	}
	return out, err
}

func (l *Limiter) decideLease(ctx context.Context, c *leaseCall) (Lease, error) {
	if l.store == nil {
		return l.leaseAnswer(c, l.leases.table.decide(c, l.micros(), c.rule.Burst), c.rule.Burst, ModeLocal)
	}
	switch {
	case c.op == leaseRenew:
		if mine, _ := l.leases.table.find(c, l.micros()); c.id.away || mine.away {
			c.op = leaseAdopt
		}
	case c.op == leaseAcquire && l.returning(c.id.key()):
		if out, denied := l.leaseBeyondShare(ctx, c); denied {
			return out, nil
		}
	}
	r, err := l.askLease(ctx, *c)
	switch {
	case err == nil:
		l.leases.table.observe(c, r, l.micros())
		return l.leaseAnswer(c, r, c.rule.Burst, ModeRedis)
	case errors.Is(err, redisstore.ErrAway):
		return l.leaseWithoutRedis(c)
	default:
		return Lease{}, err
	}
}

// leaseAnswer converts a reply to a Lease. capacity is the capacity with which the call was decided: the rule's
// capacity, or this replica's portion.
func (l *Limiter) leaseAnswer(c *leaseCall, r leaseReply, capacity int64, mode Mode) (Lease, error) {
	out := Lease{
		Rule: c.rule, Mode: mode, Limit: capacity, InUse: r.held, Remaining: max(0, capacity-r.held),
		Held: r.code == leaseDone || r.code == leaseHeld, Replayed: r.code == leaseHeld,
	}
	switch {
	case r.code == leaseNotHeld, r.code == leaseFull && c.op == leaseAdopt && !c.rule.Shadow:
		l.metrics.countLease(c, "gone", mode)
		return Lease{}, ErrNoLease
	case r.code == leaseNoRoom:
		l.metrics.countLease(c, "error", mode)
		return Lease{}, fmt.Errorf("%w: this process holds as many leases as it may", ErrUnavailable)
	case r.code == leaseFull && c.rule.Shadow && c.op != leaseCount:
		l.metrics.countLease(c, "would_deny", mode)
		out.Held, out.Unknown, c.id.away = true, true, true
		r.ends = c.ttl.Microseconds()
	case r.code == leaseFull:
		l.metrics.countLease(c, "deny", mode)
		out.RetryAfter = min(time.Duration(r.frees)*time.Microsecond, leaseRetryMax)
		return out, nil
	default:
		l.metrics.countLease(c, "allow", mode)
	}
	if c.op == leaseCount {
		return out, nil
	}
	out.ID, out.TTL = c.id, time.Duration(r.ends)*time.Microsecond
	if mode == ModeRedis {
		out.ExpiresAt = time.UnixMicro(r.now).Add(out.TTL)
	} else {
		out.ExpiresAt = l.cfg.Now().Add(out.TTL)
	}
	return out, nil
}

// leaseWithoutRedis decides a call by the rule's policy.
func (l *Limiter) leaseWithoutRedis(c *leaseCall) (Lease, error) {
	now := l.micros()
	switch c.rule.OnBackendError {
	case rule.BackendOpen:
		return l.openLease(c), nil
	case rule.BackendClosed:
		if c.rule.Shadow {
			return l.openLease(c), nil
		}
		l.metrics.countLease(c, "error", ModeLocal)
		l.metrics.degradedRules.note(c.rule.Metric, true, ModeLocal)
		return Lease{}, fmt.Errorf("%w: rule %s is closed without Redis", ErrUnavailable, c.rule.ID)
	case rule.BackendLocalShare:
	}
	if c.op == leaseRenew {
		c.op = leaseAdopt // another replica may have granted the lease
	}
	share := l.leaseShare(c)
	r := l.leases.table.decide(c, now, share)
	if l.leases.table.owing.Load() > 0 {
		l.carryOn()
	}
	if c.op == leaseAcquire && (r.code == leaseDone || r.code == leaseHeld) {
		mine, _ := l.leases.table.find(c, now)
		c.id.away = mine.away
	}
	if r.code == leaseFull && c.op == leaseAdopt && !c.rule.Shadow {
		l.metrics.countLease(c, "error", ModeLocal)
		return Lease{}, fmt.Errorf("%w: only Redis knows this lease", ErrUnavailable)
	}
	out, err := l.leaseAnswer(c, r, share, ModeLocal)
	out.Degraded = true
	return out, err
}

// leaseBeyondShare denies a new lease that exceeds this process's portion. Other processes may have granted leases that
// Redis lacks yet; these are within their portions.
func (l *Limiter) leaseBeyondShare(ctx context.Context, c *leaseCall) (out Lease, denied bool) {
	_, isHeld := l.leases.table.find(c, l.micros())
	if isHeld || c.rule.Shadow || c.rule.OnBackendError != rule.BackendLocalShare {
		return Lease{}, false
	}
	count := leaseCall{op: leaseCount, id: c.id, rule: c.rule}
	share := l.leaseShare(c)
	r := l.leases.table.decide(&count, l.micros(), share)
	if r.code != leaseFull {
		return Lease{}, false
	}
	// Whether Redis is back must be found out in any case. It gets the leases that this process knows.
	_, _ = l.askLease(ctx, count)
	out, _ = l.leaseAnswer(c, r, share, ModeLocal) // a denial is no error
	out.Degraded = true
	return out, true
}

// leaseShare returns this process's portion of the capacity.
func (l *Limiter) leaseShare(c *leaseCall) int64 {
	return l.cfg.Replicas().Portion(c.rule.Burst, c.id.key()).Tokens
}

// openLease returns a lease that is not counted.
func (l *Limiter) openLease(c *leaseCall) Lease {
	l.metrics.countLease(c, "error", ModeLocal)
	out := Lease{Rule: c.rule, Held: true, Unknown: true, Mode: ModeLocal, Degraded: true}
	if c.op != leaseCount {
		c.id.away = true
		out.ID, out.TTL, out.ExpiresAt = c.id, c.ttl, l.cfg.Now().Add(c.ttl)
	}
	return out
}

// check validates a request and returns the id and the TTL of its lease. The error is a *rule.FieldError.
func (req *LeaseRequest) check() (LeaseID, time.Duration, error) {
	if !bound.Name(req.Tenant) {
		return LeaseID{}, 0, &rule.FieldError{Field: "tenant", Reason: bound.MustBeName}
	}
	if err := checkLeaseRule(req.Rule); err != nil {
		return LeaseID{}, 0, err
	}
	if !rule.IsDimension(req.Dimension) {
		return LeaseID{}, 0, &rule.FieldError{Field: "dimension", Reason: "is not a result of Dimension"}
	}
	if req.Subject != "" && !bound.Name(req.Subject) {
		return LeaseID{}, 0, &rule.FieldError{Field: "subject", Reason: bound.MustBeName}
	}
	if n := len(req.Address); n != 0 && n != 4 && n != 16 {
		return LeaseID{}, 0, &rule.FieldError{Field: "address", Reason: "must have 4 or 16 bytes"}
	}
	ttl, err := req.Rule.LeaseTTLFor(req.TTL)
	if err != nil {
		return LeaseID{}, 0, err
	}
	id := LeaseID{
		Tenant: req.Tenant, Rule: req.Rule.ID, Dimension: req.Dimension, Subject: req.Subject, Address: req.Address, shared: req.Rule.Shared,
	}
	if req.Key != "" {
		id.nonce = nonceOf(req.Key)
	} else {
		_, _ = rand.Read(id.nonce[:]) // never fails
	}
	return id, ttl, nil
}

func checkLeaseRule(r *rule.Rule) error {
	if r == nil || r.Kind != rule.KindConcurrency || r.Burst < 1 {
		return &rule.FieldError{Field: "rule", Reason: "is not a compiled rule of kind concurrency"}
	}
	return nil
}
