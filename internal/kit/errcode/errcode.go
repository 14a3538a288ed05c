package errcode

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/quotasvc/quotasvc/internal/kit/body"
)

// Code names one way to fail. Callers switch on it; httpapi maps it to a status. The words are those of the REST
// contract.
type Code string

// The codes of errors. Where several apply to an operation, the first of this list is returned.
const (
	IdempotencyKeyReused Code = "idempotency_key_reused" // the key is stored with another request
	InvalidArgument      Code = "invalid_argument"
	TenantNotFound       Code = "tenant_not_found"
	NotFound             Code = "not_found" // a meter, plan, limit, or another object of the catalogue
	GrantNotFound        Code = "grant_not_found"
	HoldNotFound         Code = "hold_not_found"
	OperationNotFound    Code = "operation_not_found"
	Archived             Code = "archived" // before the oldest instant that can be asked about, or never
	TenantSuspended      Code = "tenant_suspended"
	MeterNotInPlan       Code = "meter_not_in_plan"
	Conflict             Code = "precondition_failed" // the state forbids it, e.g. a grant id that is taken
	HoldNotActive        Code = "hold_not_active"
	RefundExceedsDebit   Code = "refund_exceeds_debit"
	AmountOutOfRange     Code = "amount_out_of_range" // an amount or a sum of the balance would pass its bound
	QuotaExceeded        Code = "quota_exceeded"      // the period's end brings more
	CreditsExhausted     Code = "credits_exhausted"   // waiting does not help, only a grant does
	QueueFull            Code = "queue_full"
	Unavailable          Code = "unavailable"     // it could not be decided now; this attempt did nothing
	OutcomeUnknown       Code = "outcome_unknown" // it may have been done: retry with the same key
	ReportTooSlow        Code = "report_too_slow" // a question about the past reads too much
	Internal             Code = "internal"
)

// Error is a failure with a code.
type Error struct {
	Code       Code
	Fields     []body.Fault  // what is wrong with the request, by field; nil where no field is at fault
	Detail     string        // a sentence for the caller; empty where Fields say everything
	RetryAfter time.Duration // > 0 where a retry can help
	Data       any           // more about it, of a type of the package that failed: see ledger.DenialOf; nil: nothing
	Cause      error         // for the log only
}

// Errorf returns an error with a formatted Detail. field is the request field at fault, with Detail as its sentence;
// empty when none is.
func Errorf(code Code, field, format string, args ...any) *Error {
	e := &Error{Code: code, Detail: fmt.Sprintf(format, args...)}
	if field != "" {
		e.Fields = []body.Fault{{Field: field, Message: e.Detail}}
	}
	return e
}

// Of returns the code of err: of the first Error in its chain, Internal for a foreign error, and the empty code for
// nil.
func Of(err error) Code {
	if err == nil {
		return ""
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	return Internal
}

// Field returns the first field at fault; empty when none is.
func (e *Error) Field() string {
	if len(e.Fields) == 0 {
		return ""
	}
	return e.Fields[0].Field
}

// Error returns code, detail and cause, for logs. In place of a missing detail it lists the fields.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(string(e.Code))
	if e.Detail != "" {
		b.WriteString(": " + e.Detail)
	} else {
		for i := range e.Fields {
			separator := "; "
			if i == 0 {
				separator = ": "
			}
			b.WriteString(separator + e.Fields[i].Error())
		}
	}
	if e.Cause != nil {
		b.WriteString(": " + e.Cause.Error())
	}
	return b.String()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }
