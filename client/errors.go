package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// The codes that this package creates. An error with one of these codes is not from an answer of the service.
const (
	CodeNoAnswer      ProblemCode = "no_answer"       // no connection, or a broken connection
	CodeTimeout       ProblemCode = "timeout"         // no answer within Timeout or Deadline
	CodeCanceled      ProblemCode = "canceled"        // the context of the call ended; errors.Is finds its error
	CodeNotTheService ProblemCode = "not_the_service" // an answer without a code, for example a proxy's page
)

// Error is the error of a call. To find its kind, use errors.Is with the errors below or with the error of one code
// (ErrQuotaExceeded, ErrRateLimited ...), or compare Code.
type Error struct {
	Operation string // operationId in the contract
	Status    int    // status of the service's answer; 0: no answer
	Code      ProblemCode
	Detail    string      // a sentence about what failed
	Problem   *Problem    // the service's answer, with the details of its code; nil: no answer
	Header    http.Header // headers of the service's answer; nil: no answer

	RetryAfter     time.Duration // demanded by the service; 0: no wait demanded
	RequestID      string        // identifies the request in the service's log
	Attempts       int
	IdempotencyKey string // a retry with this key takes effect once
	OutcomeUnknown bool   // the operation may have taken effect

	cause error
}

// Errors for errors.Is. Each of them stands for several codes.
var (
	// ErrDenied stands for 402, and for 429 because of a balance or a limit. Nothing was charged. The call may
	// succeed after a payment or a wait.
	ErrDenied error = classError("denied")

	// ErrInvalid stands for 400 and 422. The same request would fail again. Error.Problem.Errors names the wrong
	// fields.
	ErrInvalid error = classError("the request is invalid")

	// ErrUnauthenticated stands for 401. The key is missing, unknown, expired or revoked.
	ErrUnauthenticated error = classError("unauthenticated")

	// ErrForbidden stands for 403. The plan, a block, a suspension or the rights of the key forbid the request.
	ErrForbidden error = classError("forbidden")

	// ErrNotFound stands for 404 and 410.
	ErrNotFound error = classError("not found")

	// ErrConflict stands for 409. The present state does not allow the request.
	ErrConflict error = classError("conflict")

	// ErrUndecided stands for 5xx, and for calls that the service did not answer. The same call with the same key may
	// succeed.
	ErrUndecided error = classError("the service did not decide")
)

type (
	codeError  ProblemCode
	classError string
)

func (c codeError) Error() string  { return string(c) }
func (c classError) Error() string { return string(c) }

// Error returns the code and the detail, and the faults of the request's fields.
func (e *Error) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "quotasvc: %s: %s: %s", e.Operation, e.Code, e.Detail)
	if e.Problem != nil {
		for _, f := range e.Problem.Errors {
			fmt.Fprintf(&b, "; %s %s", f.Field, f.Message)
		}
	}
	return b.String()
}

// Unwrap returns the cause: an error of the connection or of the context.
func (e *Error) Unwrap() error { return e.cause }

// Is reports whether target is the error for e's code, or an error that stands for this code.
func (e *Error) Is(target error) bool {
	switch t := target.(type) {
	case codeError:
		return e.Code == ProblemCode(t)
	case classError:
		return e.class() == t
	default:
		return false
	}
}

func (e *Error) class() error {
	switch {
	case e.Code == CodeCanceled:
		return nil
	case e.Code == ProblemCodeQuotaExceeded || e.Code == ProblemCodeCreditsExhausted || e.Code == ProblemCodeRateLimited:
		return ErrDenied
	case e.Status == 0 || e.Status >= http.StatusInternalServerError || e.Code == CodeNotTheService:
		return ErrUndecided
	}
	switch e.Status {
	case http.StatusBadRequest, http.StatusUnprocessableEntity:
		return ErrInvalid
	case http.StatusUnauthorized:
		return ErrUnauthenticated
	case http.StatusPaymentRequired, http.StatusTooManyRequests:
		return ErrDenied
	case http.StatusForbidden:
		return ErrForbidden
	case http.StatusNotFound, http.StatusGone:
		return ErrNotFound
	case http.StatusConflict:
		return ErrConflict
	default:
		return nil
	}
}

// AsError returns the Error in err. It returns nil if err contains no Error.
func AsError(err error) *Error {
	var e *Error
	_ = errors.As(err, &e)
	return e
}

// refusal returns the error for an answer with a status of 300 or more. If the answer has no code, it comes from a
// proxy and not from the service.
func refusal(resp *http.Response, text []byte) *Error {
	e := &Error{Status: resp.StatusCode, Header: resp.Header, RetryAfter: RetryAfter(resp.Header), RequestID: resp.Header.Get("X-Request-Id")}
	var p Problem
	if json.Unmarshal(text, &p) == nil && p.Code != "" {
		e.Code, e.Detail, e.Problem = p.Code, p.Detail, &p
		e.OutcomeUnknown = p.Code == ProblemCodeOutcomeUnknown || e.Status == http.StatusInternalServerError
		return e
	}
	e.Code, e.OutcomeUnknown = CodeNotTheService, e.Status >= http.StatusInternalServerError
	e.Detail = fmt.Sprintf("status %d without a code is not the service's answer", e.Status)
	if to := resp.Header.Get("Location"); to != "" {
		e.Detail = fmt.Sprintf("status %d: redirected to %s; set URL to the address of the service itself", e.Status, to)
	}
	return e
}
