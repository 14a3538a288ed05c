package httpapi

import (
	"math/bits"
	"net/http"
	"strconv"
	"time"

	"github.com/quotasvc/quotasvc/internal/body"
	"github.com/quotasvc/quotasvc/internal/bound"
	"github.com/quotasvc/quotasvc/internal/gate"
	"github.com/quotasvc/quotasvc/internal/ledger"
)

// Header names, spelled as they go over the wire. They are set without canonicalisation, which would write "Ratelimit".
const (
	headerRequestID       = "X-Request-Id"
	headerQuotaLimit      = "X-Quota-Limit"
	headerQuotaRemaining  = "X-Quota-Remaining"
	headerQuotaReset      = "X-Quota-Reset"
	headerQuotaSource     = "X-Quota-Source"
	headerRateLimitPolicy = "RateLimit-Policy"
	headerRateLimit       = "RateLimit"
	headerRateLimitMode   = "X-RateLimit-Mode"
	headerReplayed        = "Idempotent-Replayed"
	headerRetryAfter      = "Retry-After"
	headerIdempotencyKey  = "Idempotency-Key"
)

// standing is what the X-Quota headers say of one item.
type remainingHeader struct {
	required  int64 // > 0
	remaining int64
	limit     int64
	reset     time.Duration // 0 = no end
}

// tighter reports whether repeating the same request would run s dry before o: it compares remaining/required, which unlike
// the bare remainders can be compared between meters of different units.
func (s *remainingHeader) runsOutBefore(o *remainingHeader) bool {
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

// tightest collects standings and keeps the tightest.
type minRemaining struct {
	remainingHeader
	set bool
}

func (t *minRemaining) offer(s remainingHeader) {
	if !t.set || s.runsOutBefore(&t.remainingHeader) {
		t.remainingHeader, t.set = s, true
	}
}

func (t *minRemaining) offerDebit(r *ledger.DebitResult) {
	for i := range r.Items {
		it := &r.Items[i]
		// A replay has what remained then and the limit of now, which may be the smaller one.
		t.offer(remainingHeader{it.Requested, it.Remaining, max(it.Limit, it.Remaining), until(it.ResetAt, r.AsOf)})
	}
}

func (t *minRemaining) offerDenial(d *ledger.Denial, asOf time.Time) {
	t.offer(remainingHeader{d.Required, d.Remaining, d.Limit, until(d.ResetAt, asOf)})
}

func (t *minRemaining) offerCheck(c *gate.Check) {
	for i := range c.Items {
		it := &c.Items[i]
		t.offer(remainingHeader{it.Required, it.Remaining, it.Limit, until(it.ResetAt, c.AsOf)})
	}
}

// until is the time from now to at, at least a nanosecond, so that 0 can mean that there is no end.
func until(at, now time.Time) time.Duration {
	if at.IsZero() {
		return 0
	}
	return max(at.Sub(now), 1)
}

func (t *minRemaining) write(h http.Header) {
	if !t.set {
		return
	}
	set(h, headerQuotaLimit, strconv.FormatInt(t.limit, 10))
	set(h, headerQuotaRemaining, strconv.FormatInt(t.remaining, 10))
	if t.reset > 0 {
		set(h, headerQuotaReset, strconv.FormatInt(ceil(t.reset, time.Second), 10))
	}
}

func set(h http.Header, name, value string) { h[name] = []string{value} }

// The state of a balance or of a tenant, to which a change can be bound.
const (
	headerETag    = "ETag"
	headerIfMatch = "If-Match"
)

// sendETag says which state is answered: a balance's seq, a tenant's version.
func (rc *request) sendETag(state int64) {
	set(rc.Response().Header(), headerETag, `"`+strconv.FormatInt(state, 10)+`"`)
}

// ifMatch returns the state that an If-Match header wants, nil if there is none. of says whose state that is. One tag is
// taken: who sends "*" or several has not looked at what is to be changed.
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
	return nil, body.Refuse(headerIfMatch, `must be the ETag of the %s in quotes, such as "17"`, of)
}
