package errcode

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/quotasvc/quotasvc/internal/kit/body"
)

// Code is the name of a kind of failure, as in the REST contract. Callers decide by the code, and httpapi maps it to an
// HTTP status.
type Code string

// The codes of errors. If several codes apply to an operation, its error has the first of them in this list.
const (
	IdempotencyKeyReused Code = "idempotency_key_reused" // the key is stored with another request
	InvalidArgument      Code = "invalid_argument"
	TenantNotFound       Code = "tenant_not_found"
	NotFound             Code = "not_found" // a meter, plan, limit, or another object of the catalogue
	GrantNotFound        Code = "grant_not_found"
	HoldNotFound         Code = "hold_not_found"
	OperationNotFound    Code = "operation_not_found"
	ChargeNotFound       Code = "charge_not_found"
	Archived             Code = "archived" // the data about the object was archived, or the object never existed
	TenantSuspended      Code = "tenant_suspended"
	MeterNotInPlan       Code = "meter_not_in_plan"
	Conflict             Code = "precondition_failed" // the state forbids the operation, e.g. the grant id exists
	TooMany              Code = "too_many"            // the keys of the caller's tenant have created the maximum
	TooManyGrants        Code = "too_many_grants"     // the balance has as many open grants as it can have
	HoldNotActive        Code = "hold_not_active"
	RefundExceedsDebit   Code = "refund_exceeds_debit"
	AmountOutOfRange     Code = "amount_out_of_range" // an amount or a sum of the balance would pass its bound
	QuotaExceeded        Code = "quota_exceeded"      // waiting helps: the next period grants more
	CreditsExhausted     Code = "credits_exhausted"   // waiting does not help; a new grant helps
	QueueFull            Code = "queue_full"
	Unavailable          Code = "unavailable"     // no decision is possible now; nothing was done
	OutcomeUnknown       Code = "outcome_unknown" // the operation may be done: retry with the same key
	ReportTooSlow        Code = "report_too_slow" // a report about the past reads too much data
	Internal             Code = "internal"
)

// Error is a failure with a code.
type Error struct {
	Code       Code
	Fields     []body.Fault  // faults of the request, by field; nil if no field is at fault
	Detail     string        // a sentence for the caller; empty if Fields say everything
	RetryAfter time.Duration // > 0 if a retry can help
	Data       any           // details in a type of the package that failed (see ledger.DenialOf), or nil
	Cause      error         // for the log only
}

// Errorf returns an error with a formatted Detail. If field is not empty, this field is at fault, and Detail is also
// the sentence about it.
func Errorf(code Code, field, format string, args ...any) *Error {
	e := &Error{Code: code, Detail: fmt.Sprintf(format, args...)}
	if field != "" {
		e.Fields = []body.Fault{{Field: field, Message: e.Detail}}
	}
	return e
}

// Invalid returns the error of the code InvalidArgument for these faults.
func Invalid(faults ...body.Fault) *Error { return &Error{Code: InvalidArgument, Fields: faults} }

// Of returns the code of the first Error in the chain of err. If there is no Error in the chain, it returns Internal.
// For nil it returns the empty code.
func Of(err error) Code {
	if err == nil {
		return ""
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	return Internal
}

// Field returns the first field at fault. It returns "" if no field is at fault.
func (e *Error) Field() string {
	if len(e.Fields) == 0 {
		return ""
	}
	return e.Fields[0].Field
}

// Error returns code, detail and cause, for logs. If there is no detail, it lists the faults of the fields.
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
