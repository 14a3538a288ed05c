package ledger

import (
	"errors"
	"fmt"
	"time"
)

// Code names one way an operation can fail. Callers switch on it; httpapi maps it to a status.
type Code string

// The codes of errors. Where several apply, the first of this list is returned.
const (
	CodeIdempotencyKeyReused Code = "idempotency_key_reused" // the key is stored with another request
	CodeInvalidArgument      Code = "invalid_argument"
	CodeTenantNotFound       Code = "tenant_not_found"
	CodeNotFound             Code = "not_found" // a meter or plan that does not exist
	CodeGrantNotFound        Code = "grant_not_found"
	CodeHoldNotFound         Code = "hold_not_found"
	CodeOperationNotFound    Code = "operation_not_found"
	CodeArchived             Code = "archived" // it happened before the oldest instant that can be asked about, or it does not exist
	CodeTenantSuspended      Code = "tenant_suspended"
	CodeMeterNotInPlan       Code = "meter_not_in_plan"
	CodeConflict             Code = "precondition_failed" // the state forbids it, e.g. a grant id that is taken
	CodeHoldNotActive        Code = "hold_not_active"
	CodeRefundExceedsDebit   Code = "refund_exceeds_debit"
	CodeAmountOutOfRange     Code = "amount_out_of_range" // what the balance has, or its sums of the period, would pass their bound
	CodeQuotaExceeded        Code = "quota_exceeded"      // the period's end brings more
	CodeCreditsExhausted     Code = "credits_exhausted"   // waiting does not help, only a grant does
	CodeQueueFull            Code = "queue_full"
	CodeUnavailable          Code = "unavailable"     // it could not be decided now; this attempt did nothing
	CodeOutcomeUnknown       Code = "outcome_unknown" // it may have been done: retry with the same key
	CodeReportTooSlow        Code = "report_too_slow" // a question about the past reads too much
	CodeInternal             Code = "internal"
)

// NothingDone ends the detail of an operation that was refused undecided. The attempt in hand did nothing, but an earlier one with the same
// key may have ended as CodeOutcomeUnknown.
const NothingDone = "this attempt did nothing; an earlier attempt with the same key may have been carried out"

// Error is every failure that the ledger returns. Detail is written for the caller; Cause is for the log only.
type Error struct {
	Code       Code
	Field      string // request field at fault; empty when none is
	Detail     string
	RetryAfter time.Duration // > 0 where a retry can help
	Denial     *Denial       // on CodeQuotaExceeded and CodeCreditsExhausted
	Replayed   bool          // a stored denial, answered again
	AsOf       time.Time     // on denials: when it was decided
	Oldest     time.Time     // on CodeArchived: the oldest instant that can be asked about
	Cause      error
}

// Error returns code, detail and cause, for logs.
func (e *Error) Error() string {
	if e.Cause != nil {
		return fmt.Sprintf("%s: %s: %v", e.Code, e.Detail, e.Cause)
	}
	return fmt.Sprintf("%s: %s", e.Code, e.Detail)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }

// CodeOf returns the code carried by err, CodeInternal for a foreign error, and the empty code for nil.
func CodeOf(err error) Code {
	if err == nil {
		return ""
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	return CodeInternal
}

// Errorf returns an error with a formatted Detail. field is the request field at fault; empty when none is.
func Errorf(code Code, field, format string, args ...any) *Error {
	return &Error{Code: code, Field: field, Detail: fmt.Sprintf(format, args...)}
}

// Archived returns CodeArchived: field names an instant, or something that happened, before oldest.
func Archived(field string, oldest time.Time) *Error {
	e := Errorf(CodeArchived, field, "the oldest instant that can be asked about is %s", oldest.UTC().Format(time.RFC3339))
	e.Oldest = oldest
	return e
}

// inItem makes a fault of a meter one of item i of the request. A nil error stays nil.
func (e *Error) inItem(i int) *Error {
	if e != nil && e.Field == "meter" {
		e.Field = itemField(i, "meter")
	}
	return e
}

func suspended(tenant string) *Error {
	return Errorf(CodeTenantSuspended, "tenant", "tenant %q is suspended", tenant)
}
