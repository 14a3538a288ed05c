package ledger

import (
	"errors"
	"fmt"
	"time"
)

// Code names one way an operation can fail. Callers switch on it; httpapi maps it to a status.
type Code string

// The codes the ledger answers with. Where several apply, the first of this list wins.
const (
	CodeIdempotencyKeyReused Code = "idempotency_key_reused" // the key is stored with another request
	CodeInvalidArgument      Code = "invalid_argument"
	CodeTenantNotFound       Code = "tenant_not_found"
	CodeNotFound             Code = "not_found" // a meter or plan that does not exist
	CodeGrantNotFound        Code = "grant_not_found"
	CodeHoldNotFound         Code = "hold_not_found"
	CodeOperationNotFound    Code = "operation_not_found"
	CodeTenantSuspended      Code = "tenant_suspended"
	CodeMeterNotInPlan       Code = "meter_not_in_plan"
	CodeConflict             Code = "precondition_failed" // the state forbids it, e.g. a grant id that is taken
	CodeHoldNotActive        Code = "hold_not_active"
	CodeRefundExceedsDebit   Code = "refund_exceeds_debit"
	CodeQuotaExceeded        Code = "quota_exceeded"    // the period's end brings more
	CodeCreditsExhausted     Code = "credits_exhausted" // waiting does not help
	CodeQueueFull            Code = "queue_full"
	CodeUnavailable          Code = "unavailable"     // PostgreSQL did not answer in time; nothing was done
	CodeOutcomeUnknown       Code = "outcome_unknown" // it may have been done: retry with the same key
	CodeInternal             Code = "internal"
)

// Limiting names what stood in the way of a denied operation.
type Limiting struct {
	Kind    string // "allowance": the next period brings more; "credit": only a grant does
	Meter   string
	Subject string // '' = the tenant itself
	Level   string // "tenant" or "subject"
}

// Denial explains an operation refused for want of units.
type Denial struct {
	Item           int // index of the refused item
	Limiting       Limiting
	Required       int64
	Available      int64     // what could be charged now, overflow and overage included
	Remaining      int64     // see Position.Remaining
	Limit          int64     // see Position.Limit; both of the balance that limits
	ResetAt        time.Time // zero when the period's end brings nothing back
	WouldSucceedAt time.Time // when a grant, the end of holds or the period's end makes it succeed; zero when none does
}

// Error is every failure the ledger reports. Detail is written for the caller; the cause is for the log only.
type Error struct {
	Code       Code
	Field      string // request field at fault, '' when none is
	Detail     string
	RetryAfter time.Duration // > 0 where a retry can help
	Denial     *Denial       // on CodeQuotaExceeded and CodeCreditsExhausted
	Replayed   bool          // a stored denial, answered again
	AsOf       time.Time     // on denials: when it was decided
	cause      error
}

// Error returns code, detail and cause, for logs.
func (e *Error) Error() string {
	if e.cause != nil {
		return fmt.Sprintf("%s: %s: %v", e.Code, e.Detail, e.cause)
	}
	return fmt.Sprintf("%s: %s", e.Code, e.Detail)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.cause }

// CodeOf returns the code carried by err, CodeInternal for a foreign error and ” for nil.
func CodeOf(err error) Code {
	if err == nil {
		return ""
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	return CodeInternal
}

func errorf(code Code, field, format string, args ...any) *Error {
	return &Error{Code: code, Field: field, Detail: fmt.Sprintf(format, args...)}
}
