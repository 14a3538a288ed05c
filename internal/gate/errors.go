package gate

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/ratelimit"
)

// Codes of refusals by the gate. The ledger defines all other codes.
const (
	CodeRateLimited         errcode.Code = "rate_limited"
	CodeCostExceedsCapacity errcode.Code = "cost_exceeds_capacity"
	CodeTooManyLimits       errcode.Code = "too_many_limits"
	CodeForbidden           errcode.Code = "forbidden"
	CodeFeatureNotInPlan    errcode.Code = "feature_not_in_plan"
	CodeLeaseNotFound       errcode.Code = "lease_not_found"
)

// Blocked is the refusal of a request whose tenant, subject or address is blocked. The limits were not decided, and
// no limit was charged.
type Blocked struct {
	Kind      string // tenant, subject or ip
	Value     string // an id, or the address prefix
	Reason    string // empty: the block has no reason
	ExpiresAt time.Time
}

// Error names the blocked tenant, subject or address.
func (e *Blocked) Error() string { return "blocked: " + e.Kind + " " + e.Value }

// TooManyLimits is the refusal of a request that more than ratelimit.MaxCharges limits apply to. Nothing was charged.
// The cause is the catalogue, not the caller: see CheckRules.
type TooManyLimits struct {
	Rules []string // all limits that apply: more than ratelimit.MaxCharges
}

// Error states how many limits apply.
func (e *TooManyLimits) Error() string {
	return fmt.Sprintf("%d limits apply and at most %d can be decided together", len(e.Rules), ratelimit.MaxCharges)
}

// RateLimited is the refusal of a request that at least one enforced limit denied. No tokens and no units were
// charged.
type RateLimited struct {
	Violated   []string       // the rules that denied; never empty
	RetryAfter time.Duration  // the time until all these rules would let the same request pass; above 0
	Verdicts   []LimitVerdict // the verdicts of all limits that apply
}

// Error names the violated rules.
func (e *RateLimited) Error() string {
	return fmt.Sprintf("rate limited by %s, retry after %s", strings.Join(e.Violated, ", "), e.RetryAfter)
}

// Banned returns the rule with the longest ban that denied the request. It returns "" if no ban denied it.
func (e *RateLimited) Banned() string {
	longest, name := time.Duration(0), ""
	for i := range e.Verdicts {
		if v := &e.Verdicts[i]; v.Banned > longest && !v.Shadow {
			longest, name = v.Banned, v.Rule
		}
	}
	return name
}

// CostExceedsCapacity is the refusal of a request that costs more tokens than the capacity of a limit. A later retry
// cannot succeed. Nothing was charged.
type CostExceedsCapacity struct {
	Violated []string // the rules that can never let the request pass; never empty
	Verdicts []LimitVerdict
}

// Error names the violated rules.
func (e *CostExceedsCapacity) Error() string {
	return "cost exceeds the capacity of " + strings.Join(e.Violated, ", ")
}

// ReducedCapacity is the refusal of a request while Redis is down and a limit with `on_backend_error: closed`
// applies. Nothing was charged.
type ReducedCapacity struct {
	Violated   []string      // the rules with on_backend_error closed; never empty
	RetryAfter time.Duration // greater than 0
	Verdicts   []LimitVerdict
}

// Error names the violated rules.
func (e *ReducedCapacity) Error() string {
	return "redis is away, and closed limits apply: " + strings.Join(e.Violated, ", ")
}

func (e *RateLimited) code() errcode.Code         { return CodeRateLimited }
func (e *CostExceedsCapacity) code() errcode.Code { return CodeCostExceedsCapacity }
func (e *ReducedCapacity) code() errcode.Code     { return errcode.Unavailable }
func (e *Blocked) code() errcode.Code             { return CodeForbidden }
func (e *TooManyLimits) code() errcode.Code       { return CodeTooManyLimits }

// CodeOf returns the code of any error of this package: one of the gate's own codes, or a code of the ledger.
func CodeOf(err error) errcode.Code {
	var e interface{ code() errcode.Code }
	if errors.As(err, &e) {
		return e.code()
	}
	return errcode.Of(err)
}

// unavailable returns the error for a backend that did not answer. Its RetryAfter is a second.
func unavailable(detail string, cause error) error {
	return errors.Join(&errcode.Error{Code: errcode.Unavailable, Detail: detail, RetryAfter: time.Second}, cause)
}
