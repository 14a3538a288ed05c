package httpapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/quotasvc/quotasvc/internal/access"
	"github.com/quotasvc/quotasvc/internal/catalog"
	"github.com/quotasvc/quotasvc/internal/catalog/gauge"
	"github.com/quotasvc/quotasvc/internal/gate"
	"github.com/quotasvc/quotasvc/internal/kit/body"
	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/ledger"
	"github.com/quotasvc/quotasvc/internal/ratelimit"
)

// Error codes that only this package uses. The other codes come from the packages errcode and gate.
const (
	codeIdempotencyKeyMissing errcode.Code = "idempotency_key_missing"
	codeUnauthenticated       errcode.Code = "unauthenticated"
	codeMethodNotAllowed      errcode.Code = "method_not_allowed"
)

const (
	// problemBase is the URL of the page that describes the problem types. The code of a problem follows as the
	// anchor.
	problemBase = "https://github.com/quotasvc/quotasvc/blob/main/docs/api.md#"

	// Problem types that IANA has registered for the RateLimit header fields.
	typeQuotaExceeded   = "https://iana.org/assignments/http-problem-types#quota-exceeded"
	typeReducedCapacity = "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity"

	// retryAfterDefault is the Retry-After of failures whose cause does not name a delay. A failed backend rarely
	// recovers sooner.
	retryAfterDefault = time.Second
)

// problemKind is the HTTP status and the texts for one error code.
type problemKind struct {
	status int
	title  string
	detail string // for errors that have no detail
}

// problemKinds returns the table of the HTTP statuses and texts for each code. No other table maps codes to statuses.
// A code that is not in this table is answered as internal.
func problemKinds() map[errcode.Code]problemKind {
	return map[errcode.Code]problemKind{
		errcode.InvalidArgument:      {http.StatusBadRequest, "Invalid request", "the request is invalid"},
		codeIdempotencyKeyMissing:    {http.StatusBadRequest, "Idempotency key missing", "send an Idempotency-Key header of 1 to 255 visible ASCII characters"},
		codeUnauthenticated:          {http.StatusUnauthorized, "Not authenticated", "send the header Authorization: Bearer <key> with a valid key"},
		errcode.CreditsExhausted:     {http.StatusPaymentRequired, "Credits exhausted", "nothing remains, and no coming period adds more"},
		gate.CodeForbidden:           {http.StatusForbidden, "Forbidden", "the key, tenant, subject or address is not allowed to do this"},
		errcode.TenantSuspended:      {http.StatusForbidden, "Tenant suspended", "the tenant is suspended"},
		errcode.MeterNotInPlan:       {http.StatusForbidden, "Meter not in plan", "the tenant's plan does not have this meter"},
		gauge.CodeLimit:              {http.StatusForbidden, "Gauge limit", "the plan does not allow so high a value"},
		gate.CodeFeatureNotInPlan:    {http.StatusForbidden, "Feature not in plan", "the tenant's plan does not grant this feature"},
		errcode.NotFound:             {http.StatusNotFound, "Not found", "the object does not exist"},
		errcode.TenantNotFound:       {http.StatusNotFound, "Tenant not found", "the tenant does not exist"},
		errcode.GrantNotFound:        {http.StatusNotFound, "Grant not found", "the grant does not exist"},
		errcode.HoldNotFound:         {http.StatusNotFound, "Hold not found", "the hold does not exist"},
		errcode.OperationNotFound:    {http.StatusNotFound, "Operation not found", "the operation does not exist"},
		errcode.ChargeNotFound:       {http.StatusNotFound, "Charge not found", "the charge does not exist"},
		gate.CodeLeaseNotFound:       {http.StatusNotFound, "Lease not found", "no such lease: it expired, was released, or never existed"},
		errcode.Archived:             {http.StatusGone, "Archived", "what is asked for was archived, or never existed"},
		codeMethodNotAllowed:         {http.StatusMethodNotAllowed, "Method not allowed", "the resource does not support this method; see the Allow header"},
		errcode.Conflict:             {http.StatusConflict, "Conflict", "the present state does not allow this"},
		catalog.CodeChangePending:    {http.StatusConflict, "Change pending", "another change of the tenant waits; take it back first"},
		errcode.TooMany:              {http.StatusConflict, "Too many", "the keys of the tenant have created as many as they may"},
		errcode.TooManyGrants:        {http.StatusConflict, "Too many grants", "the balance has as many open grants as it can have"},
		errcode.HoldNotActive:        {http.StatusConflict, "Hold not active", "the hold is captured, released or expired"},
		errcode.IdempotencyKeyReused: {http.StatusUnprocessableEntity, "Idempotency key reused", "the key was used for another request"},
		errcode.AmountOutOfRange:     {http.StatusUnprocessableEntity, "Amount out of range", "what the balance has, or its sums of the period, would pass their bound"},
		errcode.RefundExceedsDebit:   {http.StatusUnprocessableEntity, "Refund exceeds debit", "the amount is more than can still be refunded"},
		gate.CodeCostExceedsCapacity: {http.StatusUnprocessableEntity, "Cost exceeds capacity", "the request costs more than a rate limit can ever allow"},
		gate.CodeTooManyLimits:       {http.StatusUnprocessableEntity, "Too many limits", "more rate limits apply than one decision can hold"},
		errcode.QuotaExceeded:        {http.StatusTooManyRequests, "Quota exceeded", "not enough remains in this period"},
		gate.CodeRateLimited:         {http.StatusTooManyRequests, "Rate limited", "a rate limit was reached"},
		errcode.Internal:             {http.StatusInternalServerError, "Internal error", "an internal error; the request id identifies it in our log"},
		errcode.QueueFull:            {http.StatusServiceUnavailable, "Queue full", "too many requests are waiting; this attempt did nothing"},
		errcode.ReportTooSlow:        {http.StatusServiceUnavailable, "Report too slow", "the report reads too much; ask for less"},
		errcode.Unavailable:          {http.StatusServiceUnavailable, "Unavailable", "a backend did not answer in time; this attempt did nothing"},
		errcode.OutcomeUnknown:       {http.StatusServiceUnavailable, "Outcome unknown", "the request may have been carried out; retry with the same Idempotency-Key to find out"},
	}
}

// problem is an error in the form of an answer.
type problem struct {
	code       errcode.Code
	kind       problemKind
	uri        string // the URI of the problem type
	detail     string
	fields     []body.Fault
	denial     *ledger.Denial
	oldest     time.Time // for the code archived: the time of the oldest entries in the database
	blocked    *gate.Blocked
	violated   []string
	limits     []gate.LimitVerdict
	retryAfter time.Duration // > 0 on 429 and 503 only
	degraded   bool          // the limits were decided without Redis
}

// problemOf returns the problem for any error. An unknown error becomes the code internal, without a detail.
func (s *Server) problemOf(err error) problem {
	p := problem{code: errcode.Internal}
	if e, ok := errors.AsType[*errcode.Error](err); ok {
		p.fromCode(e)
	} else if e, ok := errors.AsType[*body.Error](err); ok {
		p.code, p.fields = errcode.InvalidArgument, e.Faults
	} else if e, ok := errors.AsType[*access.Refusal](err); ok {
		p.fromAccess(e)
	} else if !p.fromGate(err) {
		p.fromTransport(err)
	}
	return s.complete(p)
}

// complete returns p with the kind of its code. It also sets the type, the detail and the delay if p lacks them. Only
// statuses 429 and 503 have a delay.
func (s *Server) complete(p problem) problem {
	kind, known := s.problems[p.code]
	if !known {
		p = problem{code: errcode.Internal}
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

// explain returns the detail for a problem that has no text: the first of its faults, the numbers of its denial, or
// else the general text for its code.
func (p *problem) explain() string {
	if len(p.fields) > 0 {
		detail := p.fields[0].Field + " " + p.fields[0].Message
		if more := len(p.fields) - 1; more > 0 {
			detail += fmt.Sprintf(" (and %d more)", more)
		}
		return detail
	}
	if d := p.denial; d != nil {
		return fmt.Sprintf("%s: %d required, %d available", d.Limiting.Meter, d.Required, d.Available)
	}
	return p.kind.detail
}

// denialEndsIn returns how long the client must wait until a retry can succeed, at least retryAfterDefault. It
// returns retryAfterDefault if this time is not known.
func (p *problem) denialEndsIn() time.Duration {
	if p.denial == nil {
		return retryAfterDefault
	}
	at := p.denial.WouldSucceedAt
	if at.IsZero() {
		at = p.denial.ResetAt
	}
	if at.IsZero() || p.denial.AsOf.IsZero() {
		return retryAfterDefault
	}
	return max(at.Sub(p.denial.AsOf), retryAfterDefault)
}

// replayed reports whether the problem is the stored denial of an earlier request.
func (p *problem) replayed() bool { return p.denial != nil && p.denial.Replayed }

func (p *problem) fromCode(e *errcode.Error) {
	p.code = e.Code
	p.detail = e.Detail
	p.fields = e.Fields
	p.retryAfter = e.RetryAfter
	p.oldest = ledger.OldestOf(e)
	switch p.denial = ledger.DenialOf(e); {
	case p.denial != nil:
		p.fields = nil // the denial already has meter and subject
	case e.Code != errcode.InvalidArgument:
	case len(e.Fields) > 0:
		p.detail = "" // explain writes it again, with the field's name
	default:
		p.fields = []body.Fault{{Field: "body", Message: e.Detail}}
	}
}

func (p *problem) fromGate(err error) bool {
	if e, ok := errors.AsType[*gate.RateLimited](err); ok {
		p.code, p.uri = gate.CodeRateLimited, typeQuotaExceeded
		p.violated, p.limits, p.retryAfter = e.Violated, e.Verdicts, e.RetryAfter
		p.detail = "a rate limit was reached; nothing was charged"
		if rule := e.Banned(); rule != "" {
			p.detail = "banned by " + rule + " after too many denials; nothing was charged"
		}
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
			"Change the catalogue: narrow some limits, or let them replace each other", len(e.Rules), ratelimit.MaxCharges)
		return true
	}
	if e, ok := errors.AsType[*gate.ReducedCapacity](err); ok {
		p.code, p.uri, p.degraded = errcode.Unavailable, typeReducedCapacity, true
		p.violated, p.limits, p.retryAfter = e.Violated, e.Verdicts, e.RetryAfter
		p.detail = "a rate limit that is closed without Redis cannot be decided; nothing was charged"
		return true
	}
	return false
}

// fromTransport sets the code and the detail for errors of echo and of contexts.
func (p *problem) fromTransport(err error) {
	if e, ok := errors.AsType[*echo.HTTPError](err); ok {
		switch e.Code {
		case http.StatusNotFound:
			p.code = errcode.NotFound
		case http.StatusMethodNotAllowed:
			p.code = codeMethodNotAllowed
		}
		return
	}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		p.code = errcode.Unavailable
		// Only the ledger knows whether the operation was carried out. Therefore the detail says nothing about that.
		p.detail = "there was no answer in time; retry with the same Idempotency-Key"
	}
}
