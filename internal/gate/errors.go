package gate

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/quotasvc/quotasvc/internal/ledger"
	"github.com/quotasvc/quotasvc/internal/ratelimit"
)

// Codes of the gate's own refusals. All others are the ledger's.
const (
	CodeRateLimited         ledger.Code = "rate_limited"
	CodeCostExceedsCapacity ledger.Code = "cost_exceeds_capacity"
	CodeTooManyLimits       ledger.Code = "too_many_limits"
	CodeForbidden           ledger.Code = "forbidden"
	CodeLeaseNotFound       ledger.Code = "lease_not_found"
)

// Blocked refuses a request because its tenant, subject or address is blocked. Nothing was charged, and no limit was asked.
type Blocked struct {
	Kind      string // tenant, subject or ip
	Value     string // an id, or the prefix that holds the address
	Reason    string // '' = none is given
	ExpiresAt time.Time
}

// Error names who is blocked.
func (e *Blocked) Error() string { return "blocked: " + e.Kind + " " + e.Value }

// TooManyLimits refuses a request to which more limits apply than can be decided together. Nothing was charged. It is the
// catalogue's fault, not the caller's: see CheckRules.
type TooManyLimits struct {
	Rules []string // all that apply, more than ratelimit.MaxCharges
}

// Error says how many there are.
func (e *TooManyLimits) Error() string {
	return fmt.Sprintf("%d limits apply and at most %d can be decided together", len(e.Rules), ratelimit.MaxCharges)
}

// RateLimited refuses a request that one or more enforced limits denied. Nothing was charged, neither tokens nor units.
type RateLimited struct {
	Violated   []string       // rules that denied, never empty
	RetryAfter time.Duration  // > 0: when all of them would let the same request pass
	Verdicts   []LimitVerdict // of every limit that applied
}

// Error names the violated rules.
func (e *RateLimited) Error() string {
	return fmt.Sprintf("rate limited by %s, retry after %s", strings.Join(e.Violated, ", "), e.RetryAfter)
}

// CostExceedsCapacity refuses a request that costs more tokens than a limit can ever hold. Waiting does not help. Nothing was
// charged.
type CostExceedsCapacity struct {
	Violated []string // rules that can never let it pass, never empty
	Verdicts []LimitVerdict
}

// Error names the rules.
func (e *CostExceedsCapacity) Error() string {
	return "cost exceeds the capacity of " + strings.Join(e.Violated, ", ")
}

// ReducedCapacity refuses a request because a limit with `on_backend_error: closed` could not be decided. Nothing was
// charged.
type ReducedCapacity struct {
	Violated   []string      // rules that could not be decided, never empty
	RetryAfter time.Duration // > 0
	Verdicts   []LimitVerdict
}

// Error names the rules.
func (e *ReducedCapacity) Error() string {
	return "limits away and closed: " + strings.Join(e.Violated, ", ")
}

// CodeOf returns the code of any error of this package: the gate's own codes, else the ledger's.
func CodeOf(err error) ledger.Code {
	if _, ok := errors.AsType[*RateLimited](err); ok {
		return CodeRateLimited
	}
	if _, ok := errors.AsType[*CostExceedsCapacity](err); ok {
		return CodeCostExceedsCapacity
	}
	if _, ok := errors.AsType[*ReducedCapacity](err); ok {
		return ledger.CodeUnavailable
	}
	if _, ok := errors.AsType[*Blocked](err); ok {
		return CodeForbidden
	}
	if _, ok := errors.AsType[*TooManyLimits](err); ok {
		return CodeTooManyLimits
	}
	return ledger.CodeOf(err)
}

// unavailable is an error after which nothing was done.
func unavailable(detail string, cause error) error {
	return errors.Join(&ledger.Error{Code: ledger.CodeUnavailable, Detail: detail, RetryAfter: time.Second}, cause)
}
