package rule

import (
	"cmp"
	"fmt"
	"time"

	"github.com/quotasvc/quotasvc/internal/kit/bound"
)

// whole is the percentage of the whole rate and capacity.
const whole = 100

// BackendPolicy is the way in which a rule is decided while Redis is away.
type BackendPolicy int

const (
	// BackendLocalShare means that each process decides with its portion of the rate and the burst, from the last
	// level that it knows.
	BackendLocalShare BackendPolicy = iota
	// BackendOpen means that the rule passes every request.
	BackendOpen
	// BackendClosed means that the request fails. It is for rules that protect from abuse.
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
	// ID names the rule, ^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$. It is part of the keys of the rule's buckets. So the
	// buckets keep their levels if the rule changes and keeps its ID.
	ID string
	// Kind is "token_bucket", "leaky_bucket", "fixed_window", "sliding_window", "sliding_log" or "concurrency"; empty
	// is token_bucket.
	Kind string
	// Rate is the number of tokens that come back per period, in the form of ParseRate. For windows and logs it is
	// the whole limit.
	Rate string
	// Burst is the capacity in tokens. For buckets it is at most 2^53 / units per token. 0 means the rate's count.
	// Windows and logs can have no other capacity than the rate's count.
	Burst int64
	// Cost is the default cost of a charge, at most the burst; 0 is 1.
	Cost int64
	// Debt is the number of tokens by which a charge after the fact may take a bucket below zero. The sum of debt and
	// capacity is bounded: by 2^53 / units per token, or by 1,000 tokens in a log. Concurrency rules have no debt.
	Debt int64
	// Ban makes a bucket deny everything for a time after some denials. Concurrency rules have no ban.
	Ban BanSpec
	// Shadow means that the denials of the rule are reported and counted, but do not deny the request.
	Shadow bool
	// OnBackendError is "local_share", "open" or "closed"; empty is local_share.
	OnBackendError string
	// Shared means that all tenants use the same buckets. The dimension of such a bucket is a route, an address or
	// empty. On a cluster each bucket has its own hash tag.
	Shared bool
	// Zone is the time zone of calendar windows, from a minute to a month; nil is UTC. A charge can have its own
	// zone.
	Zone *time.Location
	// RegionShare is the percentage of the rate and the capacity that this region's Redis gets, 1..100; 0 is 100.
	// Rates of buckets are divided exactly. Capacities are rounded down to whole tokens, and are at least one.
	RegionShare int64
}

// Rule is a compiled rule. Create it with Compile. It is immutable and may be shared by goroutines.
//
// If a rule changes and keeps its ID and kind, its buckets keep the number of taken tokens. So a larger burst adds
// exactly the difference. With a smaller burst, the tokens taken beyond it must come back first. A new rate applies
// from now on. A new Debt applies to later charges.
type Rule struct {
	ID             string
	Metric         string // the value of the label rule in metrics; several rules may have the same
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

// Compile checks spec and returns the rule. The error is a *FieldError that names the field and its bound.
func Compile(spec Spec) (Rule, error) {
	if err := checkID("id", spec.ID); err != nil {
		return Rule{}, err
	}
	if spec.RegionShare < 0 || spec.RegionShare > whole {
		return Rule{}, &FieldError{"region_share", fmt.Sprintf("%d is not from 1 to %d", spec.RegionShare, whole)}
	}
	spec.RegionShare = cmp.Or(spec.RegionShare, whole)
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
	r.Cost = cmp.Or(r.Cost, 1)
	if r.Cost < 1 || r.Cost > r.Burst {
		return Rule{}, &FieldError{"cost", fmt.Sprintf("%d is not from 1 to the capacity, %d", r.Cost, r.Burst)}
	}
	r.letter = r.Kind.letter()
	return r, nil
}

// compileLimit sets limit, and sets Rate and Burst to the region's percentage. Kind, Rate and Burst must be set
// before.
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
		field, r.Burst = "rate", r.Rate.Count // the burst comes from the rate, so an error names the field rate
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

// debtError returns the error for a debt whose sum with the capacity exceeds `most` tokens.
func (r *Rule) debtError(most int64) error {
	return &FieldError{"debt", fmt.Sprintf("a debt of %d cannot be counted exactly with this rate and capacity; it may be at most %d", r.Debt, most-r.Burst)}
}

// tokensOf returns a percentage of a capacity in whole tokens. It returns at least 1, because a rule without tokens
// would deny everything.
func tokensOf(tokens, percent int64) int64 {
	return max(1, tokens/whole*percent+tokens%whole*percent/whole)
}

// Limit returns the rule's arithmetic, or nil for a rule of kind concurrency.
func (r *Rule) Limit() Limit { return r.limit }

// Compiled reports whether r is a result of Compile, of any kind except concurrency.
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
