package httpapi

import (
	"cmp"
	"math/bits"
	"net/http"
	"slices"
	"strconv"
	"strings"
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
		t.offer(standing{it.Requested, it.Remaining, it.Limit, until(it.ResetAt, r.AsOf)})
	}
}

func (t *tightest) offerDenial(d *ledger.Denial, asOf time.Time) {
	t.offer(standing{d.Required, d.Available, d.Limit, until(d.ResetAt, asOf)})
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

// writeLimits sets RateLimit-Policy and RateLimit for the enforced limits among the verdicts and returns the longest time
// until tokens are back: Retry-After must not be earlier.
func (s *Server) writeLimits(h http.Header, verdicts []gate.LimitVerdict) time.Duration {
	enforced := make([]*gate.LimitVerdict, 0, 8)
	for i := range verdicts {
		if v := &verdicts[i]; !v.Shadow {
			enforced = append(enforced, v)
		}
	}
	if len(enforced) == 0 {
		return 0
	}
	slices.SortStableFunc(enforced, compareRestriction)
	policy, state := make([]byte, 0, 256), make([]byte, 0, 256)
	longest := time.Duration(0)
	for i, v := range enforced {
		if i > 0 {
			policy, state = append(policy, ", "...), append(state, ", "...)
		}
		policy = appendItem(policy, v.Rule)
		policy = appendParameter(policy, ";q=", v.Quota)
		if v.WindowSeconds > 0 {
			policy = appendParameter(policy, ";w=", v.WindowSeconds)
		}
		wait := untilTokens(v)
		longest = max(longest, wait)
		state = appendItem(state, v.Rule)
		state = appendParameter(state, ";r=", v.Remaining)
		state = appendParameter(state, ";t=", ceil(wait, time.Second))
	}
	set(h, headerRateLimitPolicy, string(policy))
	set(h, headerRateLimit, string(state))
	if s.cfg.LegacyHeaders {
		writeLegacy(h, enforced[0])
	}
	return longest
}

// writeLegacy sets the headers that came before the structured ones, of the most restrictive limit, with delta seconds.
func writeLegacy(h http.Header, v *gate.LimitVerdict) {
	for _, prefix := range []string{"X-RateLimit-", "RateLimit-"} {
		set(h, prefix+"Limit", strconv.FormatInt(v.Limit, 10))
		set(h, prefix+"Remaining", strconv.FormatInt(v.Remaining, 10))
		set(h, prefix+"Reset", strconv.FormatInt(ceil(untilTokens(v), time.Second), 10))
	}
}

// untilTokens is when the limit lets more pass: the same request after a denial, one more token otherwise.
func untilTokens(v *gate.LimitVerdict) time.Duration {
	if !v.Allowed && !v.Never {
		return v.RetryAfter
	}
	return v.Reset
}

// compareRestriction orders the most restrictive limit first: those that denied, the longest wait before the shortest, then
// those with the fewest tokens left.
func compareRestriction(a, b *gate.LimitVerdict) int {
	if a.Allowed != b.Allowed {
		if b.Allowed {
			return -1
		}
		return 1
	}
	if order := cmp.Compare(b.RetryAfter, a.RetryAfter); order != 0 && !a.Allowed {
		return order
	}
	if order := cmp.Compare(a.Remaining, b.Remaining); order != 0 {
		return order
	}
	return strings.Compare(a.Rule, b.Rule)
}

// appendItem appends a structured-field string (RFC 9651 3.3.3). Rule ids have no quotes; a rule's name must not become
// syntax if that ever changes.
func appendItem(b []byte, name string) []byte {
	b = append(b, '"')
	for i := range len(name) {
		switch c := name[i]; {
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		case c >= ' ' && c <= '~':
			b = append(b, c)
		}
	}
	return append(b, '"')
}

// structuredMax is the largest integer of a structured field (RFC 9651 3.3.1).
const structuredMax = 999_999_999_999_999

func appendParameter(b []byte, name string, n int64) []byte {
	b = append(b, name...)
	return strconv.AppendInt(b, min(max(n, 0), structuredMax), 10)
}
