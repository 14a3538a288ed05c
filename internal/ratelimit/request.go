package ratelimit

import (
	"cmp"
	"fmt"
	"time"

	"github.com/quotasvc/quotasvc/internal/kit/bound"
	"github.com/quotasvc/quotasvc/internal/ratelimit/rule"
	"github.com/quotasvc/quotasvc/internal/store/redisstore"
)

const (
	// MaxCharges is the largest number of charges of one request. Together with MaxVector it bounds the time of one
	// script call.
	MaxCharges = 16
)

// Charge is one rule's part of a request.
type Charge struct {
	// Rule must be a result of rule.Compile.
	Rule *rule.Rule
	// Dimension separates the buckets of one rule and tenant, for example by subject and route. It is a result of
	// rule.Dimension. If it is empty, there is one bucket for the whole tenant, or for all tenants if the rule is
	// shared.
	Dimension string
	// Zone is the time zone of the rule's calendar windows for this request; nil is the rule's own zone.
	Zone *time.Location
	// Cost is the number of tokens to take, or to give back in a refund; 0 is the rule's own cost. A cost beyond the
	// rule's capacity gets the verdict Never, which is not an error.
	Cost int64
	// Unit is the number of tokens that the charge takes if the request costs 1. It is only kept for a Receipt.
	Unit int64

	taken int64 // µs; of a refund or settlement: Verdict.at after the charge, or rule.UnknownTime
}

// Request is a tenant and 1..MaxCharges charges with distinct buckets, which are decided together.
type Request struct {
	Tenant  string
	Charges []Charge

	// With has keys whose values are read in the same pipeline; it may be nil. The hash tag of these keys must be the
	// tenant. With.Values stays nil if the tenant's shard was not asked or did not answer. A refund reads nothing.
	With *redisstore.Reads

	// Once is the id of the request: any text; empty: none. A rule that a Consume of the tenant with this id has charged
	// in the last OnceFor passes, and is not charged again. Refund makes the id forget its rules. Peek and ConsumeLate do
	// not use it.
	Once string

	// Fresh makes Redis decide a peek, even if this process has held levels.
	Fresh bool

	local uint16 // of a refund: one bit for each charge that was taken in this process instead of Redis
}

// Verdict is the decision of one rule.
type Verdict struct {
	Rule *rule.Rule
	// Allowed means that this rule passes the request. The verdict of a shadow rule is reported, and decides nothing.
	Allowed bool
	// Never means that the cost exceeds the rule's capacity, so waiting does not help. Then RetryAfter is 0.
	Never bool
	// Unknown means that the verdict does not come from a bucket. For example, the rule is open while Redis is away,
	// or the stored value of a shadow rule's bucket is unreadable. Such a verdict is Allowed. Its Remaining,
	// RetryAfter, Next and Reset must not be shown.
	Unknown bool
	// Remaining is the number of whole tokens left, after this request's own charge. In a degraded decision it is the
	// number left in this replica's portion.
	Remaining int64
	// Owed is the number of tokens below zero. Charges after the fact took more than was left, or the capacity was
	// lowered.
	Owed int64
	// Charged is the number of tokens that the request took. After ConsumeLate it may be less than the cost.
	Charged int64
	// Limit is the rule's capacity in tokens; in a degraded decision, this replica's portion.
	Limit int64
	// RetryAfter is the time until the same cost passes if nothing else is charged, exact to the microsecond. It is 0
	// if the cost passes now.
	RetryAfter time.Duration
	// Banned is the time until the bucket's ban ends. Until then no request passes, for any value of Remaining. It is
	// 0 if the bucket is not banned.
	Banned time.Duration
	// Next is the time until Remaining grows by one. It is 0 if the bucket is full.
	Next time.Duration
	// Reset is the time until the bucket is full.
	Reset time.Duration
	// Delay is the time that an admitted request must wait in a leaky bucket. It is 0 for other kinds.
	Delay time.Duration
	// Shadow is true for a shadow rule.
	Shadow bool
	// Mode is the place where this rule was decided.
	Mode Mode

	at int64 // µs; the bucket's time, or of a bucket that refills: when it is full if nothing else is charged
}

// Mode says where a decision was made.
type Mode int

const (
	// ModeRedis means that Redis decided, with the state that all replicas share.
	ModeRedis Mode = iota
	// ModeMemo means that this process remembered a denial of Redis that is still valid.
	ModeMemo
	// ModeHeld means that this process decided from held levels. Redis announces every change of such a level.
	ModeHeld
	// ModeLocal means that this process decided alone, because Redis is away or the limiter is in local mode.
	ModeLocal
)

// String returns the mode's name in metrics and headers.
func (m Mode) String() string {
	switch m {
	case ModeMemo:
		return "memo"
	case ModeHeld:
		return "held"
	case ModeLocal:
		return "local"
	default:
		return "redis"
	}
}

// Decision is the answer to a request. Its verdicts are in the order of the request's charges.
type Decision struct {
	// Allowed means that every enforced rule passed. After a Consume it also means that all these rules were charged.
	// If Allowed is false, nothing was charged.
	Allowed  bool
	Verdicts []Verdict
	// Mode is ModeLocal if any of the rules was decided in this process alone. Each verdict has its own Mode.
	Mode Mode
	// Degraded means that the OnBackendError of at least one rule decided, because Redis did not decide.
	Degraded bool
}

// Charged returns the part of req that was charged. Pass it to Refund if the work is not done. The result also
// contains whether Redis or this process was charged. Shadow rules that were not charged are left out.
func (d Decision) Charged(req Request) Request {
	taken := Request{Tenant: req.Tenant, Once: req.Once}
	if !d.Allowed {
		return taken
	}
	for i, v := range d.Verdicts {
		if v.Charged > 0 {
			c := req.Charges[i]
			c.Cost, c.taken = v.Charged, v.at
			taken.add(c, v.Mode == ModeLocal)
		}
	}
	return taken
}

// Only returns a copy of req that has only the charges whose rules the given function accepts. It is used to refund
// only these charges.
func (req Request) Only(is func(*rule.Rule) bool) Request {
	part := Request{Tenant: req.Tenant, With: req.With, Once: req.Once}
	for i, c := range req.Charges {
		if is(c.Rule) {
			part.add(c, req.isLocal(i))
		}
	}
	return part
}

// add adds a charge. local means that it was taken in this process instead of Redis.
func (req *Request) add(c Charge, local bool) {
	if local {
		req.local |= 1 << len(req.Charges)
	}
	req.Charges = append(req.Charges, c)
}

// isLocal reports whether the charge with the index i was taken in this process instead of Redis.
func (req *Request) isLocal(i int) bool { return req.local&(1<<i) != 0 }

// query is a checked request, or a part of one.
type query struct {
	op      rule.Op
	tenant  string
	charges []charge
	with    *redisstore.Reads // may be nil
	fresh   bool              // of a peek: do not decide from held levels
	once    onceKey           // see identified

	mirrored bool // of a decision in this process: Redis decides it as well

	// positions are the indices of the charges in the whole request, if this query is a part of it.
	positions []int
}

// charge is a checked charge.
type charge struct {
	rule *rule.Rule
	key  string
	tag  string // the hash tag of key: buckets of one tag share a slot
	cost int64
	zone *time.Location

	taken int64 // Charge.taken
	again bool  // of a decision in this process: the id of the query has charged the rule
}

// at returns now (µs) with the time zone of the charge.
func (c *charge) at(now int64) rule.Moment { return rule.Moment{Now: now, Zone: c.zone} }

// check validates a request and returns its query. The error is a *rule.FieldError.
func (req Request) check(o rule.Op) (query, error) {
	if !bound.Name(req.Tenant) {
		return query{}, &rule.FieldError{Field: "tenant", Reason: bound.MustBeName}
	}
	if n := len(req.Charges); n > MaxCharges {
		return query{}, &rule.FieldError{Field: "charges", Reason: fmt.Sprintf("%d rules; at most %d", n, MaxCharges)}
	}
	q := query{op: o, tenant: req.Tenant, charges: make([]charge, len(req.Charges))}
	if req.Once != "" {
		q.once = newOnceKey(req.Tenant, req.Once)
	}
	if o != rule.Refund {
		q.with, q.fresh = req.With, req.Fresh
	}
	for i, c := range req.Charges {
		if !c.Rule.Compiled() {
			return query{}, chargeError(i, "rule", "is not compiled")
		}
		cost := cmp.Or(c.Cost, c.Rule.Cost)
		if cost < 1 || cost > bound.MaxAmount {
			return query{}, chargeError(i, "cost", fmt.Sprintf("%d is not from 1 to %d", c.Cost, int64(bound.MaxAmount)))
		}
		if !rule.IsDimension(c.Dimension) {
			return query{}, chargeError(i, "dimension", "is not a result of Dimension")
		}
		key, tag := c.Rule.BucketKey(req.Tenant, c.Dimension)
		q.charges[i] = charge{rule: c.Rule, key: key, tag: tag, cost: cost, zone: c.Zone, taken: c.taken}
		if c.Zone == nil {
			q.charges[i].zone = c.Rule.Zone
		}
		for j := range i {
			if q.charges[j].key == q.charges[i].key {
				return query{}, chargeError(i, "rule", fmt.Sprintf("charges the same bucket of %s twice", c.Rule.ID))
			}
		}
	}
	return q, nil
}

// parts splits q by hash tag, because on a cluster a script call can use the keys of only one slot. The tenant's own
// part is the last.
func (q *query) parts() []query {
	var all []query
	index := make(map[string]int, 1)
	for _, own := range []bool{false, true} {
		for i := range q.charges {
			c := &q.charges[i]
			if own == c.rule.Shared {
				continue
			}
			at, known := index[c.tag]
			if !known {
				at = len(all)
				index[c.tag] = at
				all = append(all, query{op: q.op, tenant: q.tenant, once: q.once.in(c.tag)})
				if own {
					all[at].with = q.with
				}
			}
			position := i
			if q.positions != nil {
				position = q.positions[i]
			}
			all[at].charges = append(all[at].charges, *c)
			all[at].positions = append(all[at].positions, position)
		}
	}
	return all
}

func chargeError(i int, field, reason string) error {
	return &rule.FieldError{Field: fmt.Sprintf("charges[%d].%s", i, field), Reason: reason}
}
