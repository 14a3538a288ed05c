package rule

import (
	"fmt"
	"time"
)

// These are bounds of leases.
const (
	// MinLeaseTTL and MaxLeaseTTL bound the time for which a lease lasts without a renewal. If its holder dies, the
	// slot stays taken for this time.
	MinLeaseTTL = time.Second
	// MaxLeaseTTL does not limit the duration of the work, because a holder that needs more time renews its lease.
	MaxLeaseTTL = time.Hour

	// DefaultLeaseTTL is the default TTL of leases of rules without a rate. The lease of a dead holder ends within a
	// minute. A live holder renews its lease about every 20 s, which is cheap.
	DefaultLeaseTTL = time.Minute

	// MaxLeases is the largest capacity of a concurrency rule. A bucket of that size takes 1.2 MB in Redis. If the
	// clock is set back, a call that moves such a bucket takes 20 ms.
	MaxLeases = 10_000
)

// compileConcurrency compiles a rule of kind concurrency, which allows at most Burst leases at a time. A rate is
// optional. Its count is the capacity if no burst is set. Its period is the default TTL of a lease.
func compileConcurrency(spec Spec) (Rule, error) {
	r := Rule{ID: spec.ID, Metric: spec.ID, Kind: KindConcurrency, Burst: spec.Burst, Cost: 1, Shadow: spec.Shadow, Shared: spec.Shared}
	if spec.Debt != 0 {
		return Rule{}, &FieldError{"debt", fmt.Sprintf("is %d; it must be 0 or absent: a lease is held or not", spec.Debt)}
	}
	if err := r.compileBan(spec.Ban); err != nil {
		return Rule{}, err
	}
	field := "burst"
	if spec.Rate != "" {
		var err error
		if r.Rate, err = ParseRate(spec.Rate); err != nil {
			return Rule{}, err
		}
		if p := r.Rate.Period; p < MinLeaseTTL || p > MaxLeaseTTL || p%time.Second != 0 {
			return Rule{}, rateError("the period %s is how long a lease lasts; it must be whole seconds from %s to %s", p, MinLeaseTTL, MaxLeaseTTL)
		}
		if r.Burst == 0 {
			field, r.Burst = "rate", r.Rate.Count
		}
	}
	if r.Burst < 1 || r.Burst > MaxLeases {
		return Rule{}, &FieldError{field, fmt.Sprintf("%d leases at a time is not from 1 to %d", r.Burst, MaxLeases)}
	}
	r.Burst = tokensOf(r.Burst, spec.RegionShare)
	if spec.Cost != 0 && spec.Cost != 1 {
		return Rule{}, &FieldError{"cost", fmt.Sprintf("is %d; a lease is one of the burst, so it must be 1 or absent", spec.Cost)}
	}
	var err error
	if r.OnBackendError, err = parsePolicy(spec.OnBackendError); err != nil {
		return Rule{}, err
	}
	r.letter = r.Kind.letter()
	return r, nil
}

// LeaseTTL returns the default time for which a lease of a concurrency rule lasts.
func (r *Rule) LeaseTTL() time.Duration {
	if r.Rate.Period > 0 {
		return r.Rate.Period
	}
	return DefaultLeaseTTL
}

// LeaseTTLFor checks a requested TTL and returns it. For 0 it returns the rule's LeaseTTL. The error is a
// *FieldError.
func (r *Rule) LeaseTTLFor(asked time.Duration) (time.Duration, error) {
	if asked == 0 {
		return r.LeaseTTL(), nil
	}
	if asked < MinLeaseTTL || asked > MaxLeaseTTL {
		return 0, &FieldError{"ttl_seconds", fmt.Sprintf("%s is not from %s to %s", asked, MinLeaseTTL, MaxLeaseTTL)}
	}
	return asked, nil
}
