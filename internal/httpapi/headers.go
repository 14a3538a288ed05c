package httpapi

import (
	"math/bits"
	"net/http"
	"strconv"
	"time"

	"github.com/quotasvc/quotasvc/internal/gate"
	"github.com/quotasvc/quotasvc/internal/httpapi/encoding"
	"github.com/quotasvc/quotasvc/internal/kit/body"
	"github.com/quotasvc/quotasvc/internal/kit/bound"
	"github.com/quotasvc/quotasvc/internal/ledger"
)

// Names of headers, in the spelling of the keys of an http.Header. Handlers and the function set use them as keys
// without a conversion.
const (
	headerRequestID      = "X-Request-Id"
	headerQuotaLimit     = "X-Quota-Limit"
	headerQuotaRemaining = "X-Quota-Remaining"
	headerQuotaReset     = "X-Quota-Reset"
	headerQuotaSource    = "X-Quota-Source"
	headerReportLag      = "X-Quota-Report-Lag"
	headerReplayed       = "Idempotent-Replayed"
	headerRetryAfter     = "Retry-After"
	headerIdempotencyKey = "Idempotency-Key"
	headerExpose         = "Access-Control-Expose-Headers"
)

// minRemaining has the values of the X-Quota headers. Items are offered to it, and it keeps the item whose units run
// out first.
type minRemaining struct {
	required  int64 // units that the request needs; 0: no item was offered
	remaining int64
	limit     int64
	reset     time.Duration // until the period ends; 0: it has no end
}

// runsOutBefore reports whether the item of s runs out before the item of o, if the request is repeated. It compares
// remaining/required, because this ratio does not depend on the meters' units.
func (s *minRemaining) runsOutBefore(o *minRemaining) bool {
	aHigh, aLow := bits.Mul64(uint64(s.remaining), uint64(o.required))
	bHigh, bLow := bits.Mul64(uint64(o.remaining), uint64(s.required))
	if aHigh != bHigh {
		return aHigh < bHigh
	}
	if aLow != bLow {
		return aLow < bLow
	}
	return s.remaining < o.remaining
}

// offer replaces s by o if the item of o runs out earlier.
func (s *minRemaining) offer(o minRemaining) {
	if s.required == 0 || o.runsOutBefore(s) {
		*s = o
	}
}

// offerItem offers an item with the position of the tenant's balance, or that of the subject's cap if less remains of
// it. A replay has the remaining units of its first execution. The limit is the present limit, which may be smaller.
func (s *minRemaining) offerItem(required int64, p ledger.Position, limit *ledger.Position, asOf time.Time) {
	p = p.Within(limit)
	s.offer(minRemaining{required, p.Remaining, max(p.Limit, p.Remaining), until(p.ResetAt, asOf)})
}

func (s *minRemaining) offerDebit(r *ledger.DebitResult) {
	for i := range r.Items {
		it := &r.Items[i]
		s.offerItem(it.Requested, it.Position, it.Cap, r.AsOf)
	}
}

func (s *minRemaining) offerDenial(d *ledger.Denial) {
	s.offer(minRemaining{d.Required, d.Remaining, d.Limit, until(d.ResetAt, d.AsOf)})
}

func (s *minRemaining) offerCheck(c *gate.Check) {
	for i := range c.Items {
		it := &c.Items[i]
		s.offerItem(it.Required, it.Position(), it.Cap, c.AsOf)
	}
}

// until returns the time from now to an instant, and at least a nanosecond. It returns 0 if the instant is the zero
// time, which means that there is no end.
func until(at, now time.Time) time.Duration {
	if at.IsZero() {
		return 0
	}
	return max(at.Sub(now), 1)
}

func (s *minRemaining) write(h http.Header) {
	if s.required == 0 {
		return
	}
	set(h, headerQuotaLimit, strconv.FormatInt(s.limit, 10))
	set(h, headerQuotaRemaining, strconv.FormatInt(s.remaining, 10))
	if s.reset > 0 {
		set(h, headerQuotaReset, strconv.FormatInt(encoding.Ceil(s.reset, time.Second), 10))
	}
}

func set(h http.Header, name, value string) { h[name] = []string{value} }

// Headers with which a client can make a change conditional on the state of a balance or a tenant.
const (
	headerETag    = "ETag"
	headerIfMatch = "If-Match"
)

// sendETag sends the ETag header. state is the seq of a balance or the version of a tenant.
func (rc *request) sendETag(state int64) {
	set(rc.Response().Header(), headerETag, `"`+strconv.FormatInt(state, 10)+`"`)
}

// ifMatch returns the state that the If-Match header requires, or nil if there is no such header. The argument `of`
// names this state in the error. The header must have exactly one tag: a client that sends "*" or several tags does
// not know the state that it changes.
func (rc *request) ifMatch(of string) (*int64, error) {
	values := rc.Request().Header[headerIfMatch]
	if len(values) == 0 {
		return nil, nil //nolint:nilnil // no header is no condition
	}
	tag := values[0]
	if n := len(tag); len(values) == 1 && n > 2 && tag[0] == '"' && tag[n-1] == '"' {
		if state, ok := body.ParseInteger(tag[1 : n-1]); ok && state <= bound.MaxAmount {
			return &state, nil
		}
	}
	return nil, body.Refuse(headerIfMatch, `must be the ETag of the %s, in quotes, such as "17"`, of)
}
