package limitheaders

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/quotasvc/quotasvc/internal/gate"
)

const (
	// namedMax bounds the limits that an answer names. Clients act on the first limit, and proxies bound the size of
	// headers.
	namedMax = 5

	// If a window denied the request, Retry-After gets a random addition of at most 1/jitterPart of the wait and at
	// most jitterMax. Without it, all clients that a window denies would return at the same instant. A minute spreads
	// them enough; a tenth of the wait until midnight can be two hours.
	jitterPart = 10
	jitterMax  = time.Minute
)

// Legacy names a set of headers that is older than RateLimit and RateLimit-Policy. Each set describes only the most
// restrictive limit.
type Legacy string

// The sets. The first two sets differ in the meaning of X-RateLimit-Reset.
const (
	// legacyXEpoch is X-RateLimit-Limit, -Remaining and -Reset, with the time of the reset in seconds since 1970.
	legacyXEpoch Legacy = "x-ratelimit-epoch"
	// legacyXDelta is X-RateLimit-Limit, -Remaining and -Reset, with the seconds until the reset.
	legacyXDelta Legacy = "x-ratelimit-delta"
	// legacyDraft is RateLimit-Limit, -Remaining and -Reset in seconds, as in drafts 03 to 06 of the specification.
	legacyDraft Legacy = "ratelimit"
)

// Check returns an error for unknown sets, duplicate sets, and two sets that use the same headers.
func Check(sets []Legacy) error {
	for i, set := range sets {
		switch set {
		case legacyXEpoch, legacyXDelta, legacyDraft:
		default:
			return fmt.Errorf("legacy headers: %q must be one of: %s, %s, %s", set, legacyXEpoch, legacyXDelta, legacyDraft)
		}
		if slices.Contains(sets[:i], set) {
			return fmt.Errorf("legacy headers: duplicate %s", set)
		}
	}
	if slices.Contains(sets, legacyXEpoch) && slices.Contains(sets, legacyXDelta) {
		return fmt.Errorf("legacy headers: %s and %s set the same headers; choose one", legacyXEpoch, legacyXDelta)
	}
	return nil
}

// Names of headers, spelled as they are sent. They are set without http.Header.Set, which would write "Ratelimit".
const (
	headerPolicy = "RateLimit-Policy"
	headerState  = "RateLimit"
	headerMode   = "X-RateLimit-Mode"
)

// Writer writes the headers.
type Writer struct {
	// Legacy are the sets that are sent in addition to RateLimit and RateLimit-Policy.
	Legacy []Legacy

	// Now is the clock of headers with a time of day; nil is time.Now.
	Now func() time.Time

	// jitter returns a random duration from 0 to limit; nil is randomUpTo.
	jitter func(limit time.Duration) time.Duration
}

// Write sets the RateLimit headers for the enforced limits among verdicts, with the most restrictive limit first. It
// returns the largest t that it sent: Retry-After must be at least as long.
//
// If a limit denied the request, only limits that denied it and will allow it later have a t. The client does not
// need to know when the other limits refill.
func (w *Writer) Write(h http.Header, verdicts []gate.LimitVerdict) time.Duration {
	enforced := make([]*gate.LimitVerdict, 0, 8)
	for i := range verdicts {
		v := &verdicts[i]
		WriteMode(h, v.Degraded)
		if !v.Shadow {
			enforced = append(enforced, v)
		}
	}
	if len(enforced) == 0 {
		return 0
	}
	if len(enforced) > 1 {
		slices.SortStableFunc(enforced, compareRestriction)
	}
	denied := !enforced[0].Allowed
	enforced = enforced[:min(len(enforced), namedMax)]
	longest := time.Duration(0)
	text := make([]byte, 0, 512) // the policies, then the states; both headers share one string
	for i, v := range enforced {
		text = appendMember(text, i, v.Policy)
	}
	policies := len(text)
	for i, v := range enforced {
		text = appendMember(text, i, `"`)
		text = append(text, v.Rule...)
		text = appendParameter(text, `";r=`, v.Remaining)
		if showsDelay(v, denied) {
			wait := delayOf(v)
			longest = max(longest, wait)
			text = appendParameter(text, ";t=", seconds(wait))
		}
	}
	values := string(text)
	both := []string{values[:policies], values[policies:]}
	h[headerPolicy], h[headerState] = both[:1:1], both[1:]
	w.writeLegacy(h, enforced[0])
	return longest
}

// WriteMode sends the header that says that limits were decided without Redis. In this mode a limit with the policy
// "open" has no verdict.
func WriteMode(h http.Header, degraded bool) {
	if degraded {
		set(h, headerMode, "local")
	}
}

// showsDelay reports whether t is meaningful. The holder of a lease decides when the lease returns, so only a denial
// has an estimate. A limit that can never allow the request has no t: a client would wait and send the same request
// again.
func showsDelay(v *gate.LimitVerdict, denied bool) bool {
	if !v.Allowed {
		return !v.Never
	}
	return !denied && !v.Concurrent
}

// writeLegacy sends the older headers. Their clients expect all three headers of a set. Therefore it sends -Reset
// even for a limit that can never allow the request: -Reset is the time until the bucket is full.
func (w *Writer) writeLegacy(h http.Header, v *gate.LimitVerdict) {
	for _, legacy := range w.Legacy {
		prefix, reset := "X-RateLimit-", seconds(fullIn(v))
		switch legacy {
		case legacyXEpoch:
			reset = seconds(time.Duration(w.now().Add(fullIn(v)).UnixNano()))
		case legacyXDelta:
		case legacyDraft:
			prefix = "RateLimit-"
		}
		set(h, prefix+"Limit", strconv.FormatInt(v.Limit, 10))
		set(h, prefix+"Remaining", strconv.FormatInt(v.Remaining, 10))
		set(h, prefix+"Reset", strconv.FormatInt(reset, 10))
	}
}

// RetryAfter returns the value of Retry-After in seconds: at least 1 and at least wait, with a random addition if a
// window denied.
func (w *Writer) RetryAfter(wait time.Duration, verdicts []gate.LimitVerdict) string {
	window := slices.ContainsFunc(verdicts, func(v gate.LimitVerdict) bool { return v.Window && !v.Shadow && !v.Allowed })
	if spread := min(wait/jitterPart, jitterMax); window && spread > 0 {
		wait += w.spread(spread)
	}
	return strconv.FormatInt(max(seconds(wait), 1), 10)
}

func (w *Writer) now() time.Time {
	if w.Now != nil {
		return w.Now()
	}
	return time.Now()
}

func (w *Writer) spread(limit time.Duration) time.Duration {
	if w.jitter != nil {
		return w.jitter(limit)
	}
	return randomUpTo(limit)
}

func set(h http.Header, name, value string) { h[name] = []string{value} }

// seconds rounds d up to whole seconds.
func seconds(d time.Duration) int64 {
	if d <= 0 {
		return 0
	}
	return int64((d-1)/time.Second) + 1
}

// randomUpTo returns a random duration from 0 to limit.
func randomUpTo(limit time.Duration) time.Duration { return rand.N(limit + 1) }

// delayOf returns the time until the limit allows the same request, if the limit denied it. Otherwise it returns the
// time until the limit has one more token.
func delayOf(v *gate.LimitVerdict) time.Duration {
	if !v.Allowed && !v.Never {
		return v.RetryAfter
	}
	return v.Next
}

// fullIn returns the time until the bucket is full. It is not known when all leases will have returned; for a denial
// there is an estimate for one lease.
func fullIn(v *gate.LimitVerdict) time.Duration {
	if v.Concurrent {
		return delayOf(v)
	}
	return v.Full
}

// MostRestrictive returns the enforced limit that answers name first. It returns nil if no limit is enforced.
func MostRestrictive(verdicts []gate.LimitVerdict) *gate.LimitVerdict {
	var first *gate.LimitVerdict
	for i := range verdicts {
		if v := &verdicts[i]; !v.Shadow && (first == nil || compareRestriction(v, first) < 0) {
			first = v
		}
	}
	return first
}

// compareRestriction orders limits from the most restrictive. First are limits that can never allow the request. Then
// follow limits that denied it, ordered by the longest wait. Last are the other limits, ordered by the fewest tokens.
func compareRestriction(a, b *gate.LimitVerdict) int {
	if order := cmp.Compare(severity(a), severity(b)); order != 0 {
		return -order
	}
	if order := cmp.Compare(b.RetryAfter, a.RetryAfter); order != 0 && !a.Allowed {
		return order
	}
	if order := cmp.Compare(a.Remaining, b.Remaining); order != 0 {
		return order
	}
	return strings.Compare(a.Rule, b.Rule)
}

func severity(v *gate.LimitVerdict) int {
	switch {
	case v.Allowed:
		return 0
	case v.Never:
		return 2
	default:
		return 1
	}
}

// appendMember appends a member of a list.
func appendMember(b []byte, at int, member string) []byte {
	if at > 0 {
		b = append(b, ", "...)
	}
	return append(b, member...)
}

// structuredMax is the largest integer of a structured field (RFC 9651 3.3.1).
const structuredMax = 999_999_999_999_999

func appendParameter(b []byte, name string, n int64) []byte {
	b = append(b, name...)
	return strconv.AppendInt(b, min(max(n, 0), structuredMax), 10)
}
