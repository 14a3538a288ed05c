package httpapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/quotasvc/quotasvc/internal/body"
	"github.com/quotasvc/quotasvc/internal/catalog"
	"github.com/quotasvc/quotasvc/internal/gate"
	"github.com/quotasvc/quotasvc/internal/ledger"
	"github.com/quotasvc/quotasvc/internal/ratelimit"
)

// Codes this package answers with by itself. All others come from the ledger and the gate.
const (
	codeIdempotencyKeyMissing ledger.Code = "idempotency_key_missing"
	codeUnauthenticated       ledger.Code = "unauthenticated"
	codeMethodNotAllowed      ledger.Code = "method_not_allowed"
)

const (
	// problemBase is where the problem types are described, each under its code.
	problemBase = "https://github.com/quotasvc/quotasvc/blob/main/docs/api.md#"

	// The registered problem types of the RateLimit header fields' specification.
	typeQuotaExceeded   = "https://iana.org/assignments/http-problem-types#quota-exceeded"
	typeReducedCapacity = "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity"

	// retryAfterDefault is for failures that come with no better idea. A backend that is away is rarely back sooner.
	retryAfterDefault = time.Second
)

// problemKind is what a code looks like over HTTP.
type problemKind struct {
	status int
	title  string
	detail string // when the error brings none
}

// problemKinds is the one place where codes become HTTP. A code that is missing here is answered as internal.
func problemKinds() map[ledger.Code]problemKind {
	return map[ledger.Code]problemKind{
		ledger.CodeInvalidArgument:      {http.StatusBadRequest, "Invalid request", "the request is invalid"},
		codeIdempotencyKeyMissing:       {http.StatusBadRequest, "Idempotency key missing", "this request needs an Idempotency-Key header of 1 to 255 visible ASCII characters"},
		codeUnauthenticated:             {http.StatusUnauthorized, "Not authenticated", "this request needs the header Authorization: Bearer <key> with a valid key"},
		ledger.CodeCreditsExhausted:     {http.StatusPaymentRequired, "Credits exhausted", "nothing is left and no period brings more"},
		gate.CodeForbidden:              {http.StatusForbidden, "Forbidden", "the tenant, subject or address is blocked"},
		ledger.CodeTenantSuspended:      {http.StatusForbidden, "Tenant suspended", "the tenant is suspended"},
		ledger.CodeMeterNotInPlan:       {http.StatusForbidden, "Meter not in plan", "the tenant's plan does not have this meter"},
		ledger.CodeNotFound:             {http.StatusNotFound, "Not found", "there is nothing here"},
		ledger.CodeTenantNotFound:       {http.StatusNotFound, "Tenant not found", "the tenant does not exist"},
		ledger.CodeGrantNotFound:        {http.StatusNotFound, "Grant not found", "the grant does not exist"},
		ledger.CodeHoldNotFound:         {http.StatusNotFound, "Hold not found", "the hold does not exist"},
		ledger.CodeOperationNotFound:    {http.StatusNotFound, "Operation not found", "the operation does not exist"},
		gate.CodeLeaseNotFound:          {http.StatusNotFound, "Lease not found", "there is no such lease: it has ended, was given back, or never was"},
		codeMethodNotAllowed:            {http.StatusMethodNotAllowed, "Method not allowed", "this resource does not have this method; Allow lists those it has"},
		ledger.CodeConflict:             {http.StatusConflict, "Conflict", "the present state forbids it"},
		ledger.CodeHoldNotActive:        {http.StatusConflict, "Hold not active", "the hold was captured, released or has expired"},
		ledger.CodeIdempotencyKeyReused: {http.StatusUnprocessableEntity, "Idempotency key reused", "the key was used for another request"},
		ledger.CodeRefundExceedsDebit:   {http.StatusUnprocessableEntity, "Refund exceeds debit", "more than can still be refunded"},
		gate.CodeCostExceedsCapacity:    {http.StatusUnprocessableEntity, "Cost exceeds capacity", "the request costs more than a rate limit can ever allow"},
		gate.CodeTooManyLimits:          {http.StatusUnprocessableEntity, "Too many limits", "more rate limits apply than can be decided together"},
		ledger.CodeQuotaExceeded:        {http.StatusTooManyRequests, "Quota exceeded", "not enough is left in this period"},
		gate.CodeRateLimited:            {http.StatusTooManyRequests, "Rate limited", "a rate limit was reached"},
		ledger.CodeInternal:             {http.StatusInternalServerError, "Internal error", "an error on our side; the request id finds it in our log"},
		ledger.CodeQueueFull:            {http.StatusServiceUnavailable, "Queue full", "too much is waiting; nothing was done"},
		ledger.CodeUnavailable:          {http.StatusServiceUnavailable, "Unavailable", "a backend did not answer in time; nothing was done"},
		ledger.CodeOutcomeUnknown:       {http.StatusServiceUnavailable, "Outcome unknown", "it may have been done; retry with the same Idempotency-Key to find out"},
	}
}

// problem is an error on its way to a client.
type problem struct {
	code       ledger.Code
	kind       problemKind
	uri        string // the type
	detail     string
	fields     []body.Fault
	denial     *ledger.Denial
	asOf       time.Time // when a denial was decided
	blocked    *gate.Blocked
	violated   []string
	limits     []gate.LimitVerdict
	retryAfter time.Duration // > 0 on 429 and 503 only
	replayed   bool
	degraded   bool // limits could not be decided in Redis
}

// problemOf translates an error, whoever made it. What it cannot place is internal, and says nothing about itself.
func (s *Server) problemOf(err error) problem {
	p := problem{code: ledger.CodeInternal}
	if e, ok := errors.AsType[*ledger.Error](err); ok {
		p.fromLedger(e)
	} else if e, ok := errors.AsType[*body.Error](err); ok {
		p.code, p.fields = ledger.CodeInvalidArgument, e.Faults
	} else if e, ok := errors.AsType[*refusal](err); ok {
		p.code, p.detail = e.code, e.detail
	} else if !p.fromGate(err) && !p.fromCatalog(err) {
		p.fromTransport(err)
	}
	return s.complete(p)
}

// complete fills in what the code decides.
func (s *Server) complete(p problem) problem {
	kind, known := s.problems[p.code]
	if !known {
		p = problem{code: ledger.CodeInternal}
		kind = s.problems[p.code]
	}
	p.kind = kind
	if kind.status == http.StatusInternalServerError {
		p = problem{code: p.code, kind: kind, uri: p.uri}
	}
	if p.uri == "" {
		p.uri = problemBase + string(p.code)
	}
	if p.detail == "" {
		p.detail = p.explain()
	}
	switch kind.status {
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		if p.retryAfter <= 0 {
			p.retryAfter = p.denialEndsIn()
		}
	default:
		p.retryAfter = 0
	}
	return p
}

// explain writes the detail of errors that bring facts instead of words.
func (p *problem) explain() string {
	if len(p.fields) > 0 {
		detail := p.fields[0].Field + " " + p.fields[0].Message
		if more := len(p.fields) - 1; more > 0 {
			detail += fmt.Sprintf(" (and %d more)", more)
		}
		return detail
	}
	if d := p.denial; d != nil {
		return fmt.Sprintf("%d of %s needed, %d available", d.Required, d.Limiting.Meter, d.Available)
	}
	return p.kind.detail
}

// untilDenialEnds is when a retry makes sense by what the denial knows.
func (p *problem) denialEndsIn() time.Duration {
	if p.denial == nil {
		return retryAfterDefault
	}
	at := p.denial.WouldSucceedAt
	if at.IsZero() {
		at = p.denial.ResetAt
	}
	if at.IsZero() || p.asOf.IsZero() {
		return retryAfterDefault
	}
	return max(at.Sub(p.asOf), retryAfterDefault)
}

func (p *problem) fromLedger(e *ledger.Error) {
	p.code, p.detail, p.retryAfter = e.Code, e.Detail, e.RetryAfter
	if e.Code == ledger.CodeInvalidArgument && e.Field != "" {
		p.detail = "" // says what is wrong with the field, and not which: explain does
	}
	p.denial, p.asOf, p.replayed = e.Denial, e.AsOf, e.Replayed
	switch {
	case e.Denial != nil: // says itself what it is about
	case e.Field != "":
		p.fields = []body.Fault{{Field: e.Field, Message: e.Detail}}
	case e.Code == ledger.CodeInvalidArgument:
		p.fields = []body.Fault{{Field: "body", Message: e.Detail}}
	}
}

func (p *problem) fromGate(err error) bool {
	if e, ok := errors.AsType[*gate.RateLimited](err); ok {
		p.code, p.uri = gate.CodeRateLimited, typeQuotaExceeded
		p.violated, p.limits, p.retryAfter = e.Violated, e.Verdicts, e.RetryAfter
		p.detail = "a rate limit was reached; nothing was charged"
		return true
	}
	if e, ok := errors.AsType[*gate.CostExceedsCapacity](err); ok {
		p.code, p.violated, p.limits = gate.CodeCostExceedsCapacity, e.Violated, e.Verdicts
		p.detail = "the request costs more than a rate limit can ever allow; nothing was charged"
		return true
	}
	if e, ok := errors.AsType[*gate.Blocked](err); ok {
		p.code, p.blocked = gate.CodeForbidden, e
		p.detail = fmt.Sprintf("the %s %s is blocked; nothing was charged", e.Kind, e.Value)
		if e.Reason != "" {
			p.detail += ": " + e.Reason
		}
		return true
	}
	if e, ok := errors.AsType[*gate.TooManyLimits](err); ok {
		p.code, p.violated = gate.CodeTooManyLimits, e.Rules
		p.detail = fmt.Sprintf("%d rate limits apply to this request, and at most %d can be decided together; nothing was charged. "+
			"The catalogue is to be changed: narrow some or let them replace each other", len(e.Rules), ratelimit.MaxCharges)
		return true
	}
	if e, ok := errors.AsType[*gate.ReducedCapacity](err); ok {
		p.code, p.uri, p.degraded = ledger.CodeUnavailable, typeReducedCapacity, true
		p.violated, p.limits, p.retryAfter = e.Violated, e.Verdicts, e.RetryAfter
		p.detail = "a rate limit that must not be passed unseen cannot be decided; nothing was charged"
		return true
	}
	return false
}

func (p *problem) fromCatalog(err error) bool {
	e, ok := errors.AsType[*catalog.Error](err)
	if !ok {
		return false
	}
	p.code, p.detail = ledger.Code(e.Code), e.Detail
	p.fields = e.Fields
	return true
}

// fromTransport places errors of echo and of contexts.
func (p *problem) fromTransport(err error) {
	if e, ok := errors.AsType[*echo.HTTPError](err); ok {
		switch e.Code {
		case http.StatusNotFound:
			p.code = ledger.CodeNotFound
		case http.StatusMethodNotAllowed:
			p.code = codeMethodNotAllowed
		}
		return
	}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		p.code = ledger.CodeUnavailable
		// Unlike the ledger, a bare deadline cannot say that nothing was done.
		p.detail = "no answer in time; retry with the same Idempotency-Key"
	}
}

// refusal is an error of this package that is about no single field.
type refusal struct {
	code   ledger.Code
	detail string
}

// Error names the code.
func (e *refusal) Error() string { return string(e.code) + ": " + e.detail }
