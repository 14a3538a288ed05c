package rule

import (
	"fmt"
	"time"

	"github.com/quotasvc/quotasvc/internal/kit/bound"
)

// whole is 100 %.
const whole = 100

// BackendPolicy decides how a rule works while Redis is away.
type BackendPolicy int

const (
	// BackendLocalShare decides in this process with its portion of rate and burst, from the last known level.
	BackendLocalShare BackendPolicy = iota
	// BackendOpen passes every request.
	BackendOpen
	// BackendClosed makes the request fail. It is for rules that protect from abuse.
	BackendClosed
)

// String returns the policy as the API writes it.
func (p BackendPolicy) String() string {
	switch p {
	case BackendLocalShare:
		return "local_share"
	case BackendOpen:
		return "open"
	case BackendClosed:
		return "closed"
	default:
		return fmt.Sprintf("policy(%d)", int(p))
	}
}

// Spec is a rule as it is written in the catalogue.
type Spec struct {
	// ID names the rule, ^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$. It is part of the keys of the buckets. So buckets keep
	// their levels when a rule changes under the same ID.
	ID string
	// Kind is "token_bucket", "leaky_bucket", "fixed_window", "sliding_window", "sliding_log" or "concurrency"; empty
	// is token_bucket.
	Kind string
	// Rate is the number of tokens that come back per period, in the form of ParseRate. For windows and the log it is
	// the whole limit.
	Rate string
	// Burst is the capacity in tokens, for buckets at most 2^53 / units per token. 0 is the rate's count, which is
	// the only capacity of windows and logs.
	Burst int64
	// Cost is the default cost of a charge, at most the burst; 0 is 1.
	Cost int64
	// Debt is the number of tokens by which a charge after the fact may take a bucket below zero; with 0 it may not
	// go below. Debt and capacity together have the bound of the capacity: 2^53 / units per token, or the tokens of a
	// log. Leases have no debt.
	Debt int64
	// Ban denies everything for a time after some denials. Leases have no ban.
	Ban BanSpec
	// Shadow makes the rule count its denials without denying.
	Shadow bool
	// OnBackendError is "local_share", "open" or "closed"; empty is local_share.
	OnBackendError string
	// Shared makes the rule's buckets common to all tenants. Their dimension is a route, an address or empty. On a
	// cluster each bucket has a separate slot.
	Shared bool
	// Zone is the calendar of windows of a minute to a month; nil is UTC. A charge can have its own.
	Zone *time.Location
	// RegionShare is the percentage of the rate for this region's Redis, 1..100; 0 is 100. Rates of buckets are
	// divided exactly. Capacities are whole tokens, rounded down, and at least one.
	RegionShare int64
}

// Rule is a compiled rule. Create it with Compile; it does not change and may be shared.
//
// A change under the same ID keeps the levels of the rule's buckets. A larger burst adds the difference. A smaller
// burst gives nothing away: the tokens taken beyond it come back first. A new rate applies from now on. Another Debt
// changes the tokens that later charges may take.
type Rule struct {
	ID             string
	Metric         string // the rule's label in metrics; several rules may have the same
	Kind           Kind
	Rate           Rate  // of this region
	Burst          int64 // capacity in tokens, of this region
	Cost           int64 // tokens
	Debt           int64 // tokens, of this region
	Ban            Ban
	Shadow         bool
	OnBackendError BackendPolicy
	Shared         bool
	Zone           *time.Location

	limit  Limit
	letter string // of the kind, in keys
}

// Compile checks spec and computes its arithmetic. The error is a *FieldError that names the field and its bound.
func Compile(spec Spec) (Rule, error) {
	if err := checkID("id", spec.ID); err != nil {
		return Rule{}, err
	}
	if spec.RegionShare < 0 || spec.RegionShare > whole {
		return Rule{}, &FieldError{"region_share", fmt.Sprintf("%d is not from 1 to %d", spec.RegionShare, whole)}
	}
	if spec.RegionShare == 0 {
		spec.RegionShare = whole
	}
	if spec.Kind == KindConcurrency.String() {
		return compileConcurrency(spec)
	}
	r := Rule{
		ID: spec.ID, Metric: spec.ID, Burst: spec.Burst, Cost: spec.Cost, Debt: spec.Debt, Shadow: spec.Shadow, Shared: spec.Shared, Zone: spec.Zone,
	}
	if r.Debt < 0 || r.Debt > maxExact {
		return Rule{}, &FieldError{"debt", fmt.Sprintf("%d is not from 0 to %d", r.Debt, int64(maxExact))}
	}
	var err error
	if r.Kind, err = parseKind(spec.Kind); err != nil {
		return Rule{}, err
	}
	if r.Rate, err = ParseRate(spec.Rate); err != nil {
		return Rule{}, err
	}
	if err := r.compileBan(spec.Ban); err != nil {
		return Rule{}, err
	}
	if r.OnBackendError, err = parsePolicy(spec.OnBackendError); err != nil {
		return Rule{}, err
	}
	if err := r.compileLimit(spec.RegionShare); err != nil {
		return Rule{}, err
	}
	if r.Cost == 0 {
		r.Cost = 1
	}
	if r.Cost < 1 || r.Cost > r.Burst {
		return Rule{}, &FieldError{"cost", fmt.Sprintf("%d is not from 1 to the capacity, %d", r.Cost, r.Burst)}
	}
	r.letter = r.Kind.letter()
	return r, nil
}

// compileLimit sets limit, and sets Rate and Burst to those of the region. It needs Kind, Rate and Burst.
func (r *Rule) compileLimit(percent int64) error {
	if err := r.Rate.check(); err != nil {
		return err
	}
	if r.Rate.Month && r.Kind != KindFixedWindow {
		return rateError("months differ in length: only a fixed_window counts by the month")
	}
	r.Debt = partOf(r.Debt, percent, whole)
	switch r.Kind {
	case KindTokenBucket, KindLeakyBucket:
		return r.compileBucket(percent)
	default:
		return r.compileWindow(percent)
	}
}

func (r *Rule) compileBucket(percent int64) error {
	field := "burst"
	if r.Burst == 0 {
		field, r.Burst = "rate", r.Rate.Count // there was no burst: if it is too large, the rate is the field in error
	}
	if r.Burst < 1 {
		return &FieldError{"burst", fmt.Sprintf("%d is not at least 1", r.Burst)}
	}
	r.Burst, r.Rate = tokensOf(r.Burst, percent), r.Rate.part(percent)
	if r.Rate.Count > maxExact {
		return &FieldError{"region_share", fmt.Sprintf("%d%% of this rate cannot be counted exactly", percent)}
	}
	b := newBucket(r.Rate, r.Burst)
	if !b.exact() {
		return &FieldError{field, fmt.Sprintf("a burst of %d at %s cannot be counted exactly; at this rate it may be at most %d",
			r.Burst, r.Rate, maxExact/b.s)}
	}
	if b.debt = r.Debt; !b.exact() {
		return r.debtError(maxExact / b.s)
	}
	r.limit = b
	if r.Kind == KindLeakyBucket {
		r.limit = leaky{b}
	}
	return nil
}

func (r *Rule) compileWindow(percent int64) error {
	if r.Burst != 0 && r.Burst != r.Rate.Count {
		return &FieldError{"burst", fmt.Sprintf("%d is not the rate's count, %d: a %s has no other capacity",
			r.Burst, r.Rate.Count, r.Kind)}
	}
	r.Rate.Count = tokensOf(r.Rate.Count, percent)
	r.Burst = r.Rate.Count
	switch r.Kind {
	case KindFixedWindow:
		if r.Debt > maxExact-r.Burst {
			return r.debtError(maxExact)
		}
		r.limit = newFixedWindow(r.Rate, r.Debt)
	case KindSlidingWindow:
		w := newSlidingWindow(r.Rate, r.Debt)
		if w.tokens > maxExact/w.ticks {
			return rateError("%s cannot be counted exactly; a sliding_window of this period may have at most %d", r.Rate, maxExact/w.ticks)
		}
		if !w.exact() {
			return r.debtError(maxExact / w.ticks)
		}
		r.limit = w
	default:
		if r.Rate.Count > maxLog {
			return rateError("%s is more than a sliding_log remembers, %d", r.Rate, maxLog)
		}
		if r.Rate.Period > maxLogPeriod {
			return rateError("the period of %s is longer than a sliding_log remembers, 31 days", r.Rate)
		}
		if r.Debt > maxLog-r.Burst {
			return r.debtError(maxLog)
		}
		r.limit = newSlidingLog(r.Rate, r.Debt)
	}
	return nil
}

// debtError returns the error for a debt that, together with the capacity, exceeds most tokens.
func (r *Rule) debtError(most int64) error {
	return &FieldError{"debt", fmt.Sprintf("a debt of %d cannot be counted exactly with this rate and capacity; it may be at most %d", r.Debt, most-r.Burst)}
}

// tokensOf returns a percentage of a capacity in whole tokens, at least one, because a rule without tokens would deny
// everything.
func tokensOf(tokens, percent int64) int64 {
	return max(1, tokens/whole*percent+tokens%whole*percent/whole)
}

// Limit returns the rule's arithmetic, or nil for a rule of kind concurrency.
func (r *Rule) Limit() Limit { return r.limit }

// Compiled reports whether r came from Compile.
func (r *Rule) Compiled() bool { return r != nil && r.limit != nil }

func parsePolicy(s string) (BackendPolicy, error) {
	for _, p := range []BackendPolicy{BackendLocalShare, BackendOpen, BackendClosed} {
		if s == p.String() {
			return p, nil
		}
	}
	if s == "" {
		return BackendLocalShare, nil
	}
	return 0, &FieldError{"on_backend_error", fmt.Sprintf("%q is not local_share, open or closed", clip(s))}
}

// checkID returns a *FieldError on field if id cannot be part of a Redis key.
func checkID(field, id string) error {
	if !bound.ID(id) {
		return &FieldError{field, bound.MustBeID}
	}
	return nil
}
