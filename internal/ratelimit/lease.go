package ratelimit

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/quotasvc/quotasvc/internal/bound"
	"github.com/quotasvc/quotasvc/internal/ratelimit/rule"
	"github.com/quotasvc/quotasvc/internal/redisstore"
)

// ErrNoLease says that there is no such lease any more: it has ended, was given back, or never was.
var ErrNoLease = errors.New("ratelimit: no such lease")

// leaseRetryMax bounds how long a caller is told to wait. When a lease ends at the latest is known, but work mostly ends before
// its lease does, and nobody is told then.
const leaseRetryMax = 5 * time.Second

// LeaseRequest asks for one of a concurrency rule's leases.
type LeaseRequest struct {
	Tenant string
	// Rule is a compiled rule of KindConcurrency.
	Rule *rule.Rule
	// Dimension is that of a Charge.
	Dimension string
	// TTL is how long the lease lasts unless it is renewed, MinLeaseTTL..MaxLeaseTTL; 0 is the rule's LeaseTTL.
	TTL time.Duration
	// Key makes retries harmless: as long as a lease that was given for it lasts, the same tenant, rule, dimension and key
	// get that lease again. "" is no key.
	Key string
}

// Lease is the answer to a question about a lease.
type Lease struct {
	// ID is set if the lease is held.
	ID   LeaseID
	Rule *rule.Rule
	// Held says that the caller has the lease until ExpiresAt; for Count, that Acquire would give one.
	Held      bool
	ExpiresAt time.Time
	// TTL is the time left until ExpiresAt, by the clock that decides.
	TTL time.Duration
	// Replayed says that the lease was held already under the request's key.
	Replayed bool
	// Unknown says that nobody counts this lease: the rule is open while Redis is away, or a shadow rule would have denied
	// it. Limit, InUse and Remaining mean nothing if the rule is open.
	Unknown bool
	// Limit is the rule's capacity; in a degraded answer, this replica's share.
	Limit int64
	// InUse is the leases held, this one included; it may be above Limit if the rule was lowered. Remaining is never
	// below 0.
	InUse, Remaining int64
	// RetryAfter is when to try again after a denial: when a lease ends at the latest, but at most leaseRetryMax.
	RetryAfter time.Duration

	Mode     Mode
	Degraded bool
}

// Acquire takes one of the rule's leases if fewer than its capacity are held. Its answer is not an error if there is none;
// Held says so. A shadow rule always gives one. It answers within the budget; while Redis is away, by the rule's
// OnBackendError. Errors: *FieldError, ErrUnavailable (a closed rule while Redis is away, or more leases than a process
// holds by itself), ErrStopped, or ctx's error. After those it is unknown whether a lease was taken: asking again with the
// same Key is safe, and a lease that nobody knows of ends by itself.
func (l *Limiter) Acquire(ctx context.Context, req LeaseRequest) (Lease, error) {
	id, ttl, err := req.check()
	if err != nil {
		return Lease{}, err
	}
	return l.lease(ctx, leaseCall{op: leaseAcquire, id: id, rule: req.Rule, ttl: ttl})
}

// Count says how many of the rule's leases are held, and takes none.
func (l *Limiter) Count(ctx context.Context, req LeaseRequest) (Lease, error) {
	id, _, err := req.check()
	if err != nil {
		return Lease{}, err
	}
	return l.lease(ctx, leaseCall{op: leaseCount, id: id, rule: req.Rule})
}

// Renew makes a lease last ttl from now, which may be less than it had left; 0 is the rule's LeaseTTL. rule must be the one
// the lease is of, as it is now: whoever looks it up decides what becomes of leases whose rule is gone. A lease that has
// ended is ErrNoLease. The other errors are Acquire's; after ErrUnavailable the lease may still be held.
//
// Leases that were given or renewed while Redis was away move to it with the first renewal after, if there is room.
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

// Release gives a lease back. Giving back what is not held any more is no error. ErrUnavailable says that Redis could not be
// told: the lease then ends at its time.
func (l *Limiter) Release(ctx context.Context, id LeaseID) error {
	if l.stopped.Load() {
		return ErrStopped
	}
	c := leaseCall{op: leaseRelease, id: id}
	own := l.leases.table.decide(&c, l.ticker.micros(), 0).code == leaseDone
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

// released is the outcome of a release.
func released(held bool) string {
	if held {
		return "done"
	}
	return "gone"
}

// lease decides a call other than a release.
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
		return l.leaseAnswer(c, l.leases.table.decide(c, l.ticker.micros(), c.rule.Burst), c.rule.Burst, ModeLocal)
	}
	if c.op == leaseRenew && (c.id.away || l.leases.table.away(c, l.ticker.micros())) {
		c.op = leaseAdopt
	}
	r, err := l.askLease(ctx, *c)
	switch {
	case err == nil:
		l.leases.table.observe(c, r, l.ticker.micros())
		return l.leaseAnswer(c, r, c.rule.Burst, ModeRedis)
	case errors.Is(err, redisstore.ErrAway):
		return l.leaseWithoutRedis(c)
	default:
		return Lease{}, err
	}
}

// leaseAnswer turns a reply into an answer. capacity is that of the bucket that was asked.
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

// leaseWithoutRedis decides by the rule's policy.
func (l *Limiter) leaseWithoutRedis(c *leaseCall) (Lease, error) {
	now := l.ticker.micros()
	switch c.rule.OnBackendError {
	case rule.BackendOpen:
		return l.openLease(c), nil
	case rule.BackendClosed:
		if c.rule.Shadow {
			return l.openLease(c), nil
		}
		l.metrics.countLease(c, "error", ModeLocal)
		l.metrics.degradedRules.note(c.rule.ID, true, ModeLocal)
		return Lease{}, fmt.Errorf("%w: rule %s is closed without Redis", ErrUnavailable, c.rule.ID)
	case rule.BackendLocalShare:
	}
	if c.op == leaseRenew {
		c.op = leaseAdopt // another replica may have given it
	}
	share := l.cfg.Replicas().Portion(c.rule.Burst, c.id.key()).Tokens
	r := l.leases.table.decide(c, now, share)
	if c.op == leaseAcquire && (r.code == leaseDone || r.code == leaseHeld) {
		c.id.away = l.leases.table.away(c, now)
	}
	if r.code == leaseFull && c.op == leaseAdopt && !c.rule.Shadow {
		l.metrics.countLease(c, "error", ModeLocal)
		return Lease{}, fmt.Errorf("%w: only Redis knows this lease", ErrUnavailable)
	}
	out, err := l.leaseAnswer(c, r, share, ModeLocal)
	out.Degraded = true
	return out, err
}

// openLease is a lease that nobody counts.
func (l *Limiter) openLease(c *leaseCall) Lease {
	l.metrics.countLease(c, "error", ModeLocal)
	out := Lease{Rule: c.rule, Held: true, Unknown: true, Mode: ModeLocal, Degraded: true}
	if c.op != leaseCount {
		c.id.away = true
		out.ID, out.TTL, out.ExpiresAt = c.id, c.ttl, l.cfg.Now().Add(c.ttl)
	}
	return out
}

// check turns a request into an id and a time to live. The error is a *FieldError.
func (req *LeaseRequest) check() (LeaseID, time.Duration, error) {
	if !bound.ID(req.Tenant) {
		return LeaseID{}, 0, &rule.FieldError{Field: "tenant", Reason: bound.MustBeID}
	}
	if err := checkLeaseRule(req.Rule); err != nil {
		return LeaseID{}, 0, err
	}
	if !rule.IsDimension(req.Dimension) {
		return LeaseID{}, 0, &rule.FieldError{Field: "dimension", Reason: "is not a result of Dimension"}
	}
	ttl, err := req.Rule.LeaseTTLFor(req.TTL)
	if err != nil {
		return LeaseID{}, 0, err
	}
	id := LeaseID{Tenant: req.Tenant, Rule: req.Rule.ID, Dimension: req.Dimension, shared: req.Rule.Shared}
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
