package httpapi

import (
	"math/bits"
	"net/http"
	"strconv"
	"time"

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
type standing struct {
	required  int64 // > 0
	remaining int64
	limit     int64
	reset     time.Duration // 0 = no end
}

// tighter reports whether repeating the same request would run s dry before o: it compares remaining/required, which unlike
// the bare remainders can be compared between meters of different units.
func (s *standing) tighter(o *standing) bool {
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
type tightest struct {
	standing
	some bool
}

func (t *tightest) offer(s standing) {
	if !t.some || s.tighter(&t.standing) {
		t.standing, t.some = s, true
	}
}

func (t *tightest) offerDebit(r *ledger.DebitResult) {
	for i := range r.Items {
		it := &r.Items[i]
		// A replay has what remained then and the limit of now, which may be the smaller one.
		t.offer(standing{it.Requested, it.Remaining, max(it.Limit, it.Remaining), until(it.ResetAt, r.AsOf)})
	}
}

func (t *tightest) offerDenial(d *ledger.Denial, asOf time.Time) {
	t.offer(standing{d.Required, d.Remaining, d.Limit, until(d.ResetAt, asOf)})
}

func (t *tightest) offerCheck(c *gate.Check) {
	for i := range c.Items {
		it := &c.Items[i]
		t.offer(standing{it.Required, it.Remaining, it.Limit, until(it.ResetAt, c.AsOf)})
	}
}

// until is the time from now to at, at least a nanosecond, so that 0 can mean that there is no end.
func until(at, now time.Time) time.Duration {
	if at.IsZero() {
		return 0
	}
	return max(at.Sub(now), 1)
}

func (t *tightest) write(h http.Header) {
	if !t.some {
		return
	}
	set(h, headerQuotaLimit, strconv.FormatInt(t.limit, 10))
	set(h, headerQuotaRemaining, strconv.FormatInt(t.remaining, 10))
	if t.reset > 0 {
		set(h, headerQuotaReset, strconv.FormatInt(ceil(t.reset, time.Second), 10))
	}
}

func set(h http.Header, name, value string) { h[name] = []string{value} }
