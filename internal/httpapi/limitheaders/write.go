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
	"github.com/quotasvc/quotasvc/internal/httpapi/encoding"
)

const (
	// namedMax is the maximum number of limits that a header names. Clients use the first limit, and proxies bound
	// the size of headers.
	namedMax = 5

	// If a window denied the request, a random time is added to Retry-After. Otherwise all denied clients would return
	// at the same instant. The random time is at most 1/jitterPart of the wait and at most jitterMax: a minute is
	// enough to spread the clients, and a tenth of the wait until midnight could be two hours.
	jitterPart = 10
	jitterMax  = time.Minute
)

// Legacy names a set of headers that is older than RateLimit and RateLimit-Policy. Each set describes only the most
// restrictive limit.
type Legacy string

// The supported sets. legacyXEpoch and legacyXDelta have the same headers and differ in the meaning of
// X-RateLimit-Reset.
const (
	// legacyXEpoch is the set X-RateLimit-Limit, -Remaining and -Reset, in which -Reset is a time in seconds since
	// 1970.
	legacyXEpoch Legacy = "x-ratelimit-epoch"
	// legacyXDelta is the set X-RateLimit-Limit, -Remaining and -Reset, in which -Reset is the seconds until the
	// reset.
	legacyXDelta Legacy = "x-ratelimit-delta"
	// legacyDraft is the set RateLimit-Limit, -Remaining and -Reset, in which -Reset is the seconds until the reset.
	// Drafts 03 to 06 of the specification define it.
	legacyDraft Legacy = "ratelimit"
)

// Check returns an error for unknown sets, duplicate sets, and two sets with the same headers.
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

// Names of headers, spelled as they are sent. http.Header.Set would write "Ratelimit", so it is not used.
const (
	headerPolicy = "RateLimit-Policy"
	headerState  = "RateLimit"
	headerMode   = "X-RateLimit-Mode"
)

// Writer writes the headers that show rate limits.
type Writer struct {
	// Legacy lists the sets that are sent in addition to RateLimit and RateLimit-Policy.
	Legacy []Legacy

	// Now is the clock for headers with a point in time; nil: time.Now.
	Now func() time.Time

	// jitter returns a random duration from 0 to limit; nil: randomUpTo.
	jitter func(limit time.Duration) time.Duration
}

// Write sets the RateLimit headers for the enforced limits among verdicts, with the most restrictive limit first. It
// returns the largest t that it sent: Retry-After must be at least this t.
//
// If limits denied the request, only the limits that denied it and will allow it later have a t. The client need not
// know when the other limits refill.
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

// WriteMode sends a header that says that limits were decided without Redis. Without Redis, a limit with the policy
// "open" has no verdict.
func WriteMode(h http.Header, degraded bool) {
	if degraded {
		set(h, headerMode, "local")
	}
}

// showsDelay reports whether the state of a limit has a t. A limit of kind concurrency has a t only after a denial,
// because the holder of a lease decides when the lease ends. A limit that can never allow the request has no t,
// because a client would wait and send the same request again.
func showsDelay(v *gate.LimitVerdict, denied bool) bool {
	if !v.Allowed {
		return !v.Never
	}
	return !denied && !v.Concurrent
}

// writeLegacy sends the older headers. Their clients expect all three headers of a set. Therefore writeLegacy sends
// -Reset even for a limit that can never allow the request. -Reset is the time until the bucket is full.
func (w *Writer) writeLegacy(h http.Header, v *gate.LimitVerdict) {
	for _, legacy := range w.Legacy {
		prefix, reset := "X-RateLimit-", seconds(fullIn(v))
		switch legacy {
		case legacyXEpoch:
			reset = w.now().Add(fullIn(v) + time.Second - 1).Unix()
		case legacyXDelta:
		case legacyDraft:
			prefix = "RateLimit-"
		}
		set(h, prefix+"Limit", strconv.FormatInt(v.Limit, 10))
		set(h, prefix+"Remaining", strconv.FormatInt(v.Remaining, 10))
		set(h, prefix+"Reset", strconv.FormatInt(reset, 10))
	}
}

// RetryAfter returns the value of Retry-After in seconds, which is at least 1 and at least wait. If a window denied
// the request, it adds a random time.
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
func seconds(d time.Duration) int64 { return encoding.Ceil(d, time.Second) }

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

// fullIn returns the time until the bucket is full. For a limit of kind concurrency, this time is not known: the
// result is the time until one lease ends, if the request was denied.
func fullIn(v *gate.LimitVerdict) time.Duration {
	if v.Concurrent {
		return delayOf(v)
	}
	return v.Full
}

// MostRestrictive returns the most restrictive limit that is enforced. It returns nil if no limit is enforced.
func MostRestrictive(verdicts []gate.LimitVerdict) *gate.LimitVerdict {
	var first *gate.LimitVerdict
	for i := range verdicts {
		if v := &verdicts[i]; !v.Shadow && (first == nil || compareRestriction(v, first) < 0) {
			first = v
		}
	}
	return first
}

// compareRestriction is the order of limits in a header. First come the limits that can never allow the request. Then
// come the limits that denied it, the longest wait first. Last come the other limits, the fewest remaining tokens
// first.
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

// appendMember appends a member of a list. The argument `at` is the index of the member.
func appendMember(b []byte, at int, member string) []byte {
	if at > 0 {
		b = append(b, ", "...)
	}
	return append(b, member...)
}

// structuredMax is the largest integer that a structured field may have (RFC 9651 3.3.1).
const structuredMax = 999_999_999_999_999

func appendParameter(b []byte, name string, n int64) []byte {
	b = append(b, name...)
	return strconv.AppendInt(b, min(max(n, 0), structuredMax), 10)
}
