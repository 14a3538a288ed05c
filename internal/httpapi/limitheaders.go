package httpapi

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
	// namedMax is how many limits an answer names. A client acts on the first, and a proxy has limits of its own.
	namedMax = 5

	// unitConcurrency is what a concurrency limit counts. Requests are the default and not written.
	unitConcurrency = "concurrent-requests"

	// jitterPart of the wait for a window's end, but no more than jitterMax, is added at random: everybody whom a window has
	// turned away waits for the same instant. A minute is enough to spread them, and of the wait until midnight a tenth
	// would be hours.
	jitterPart = 10
	jitterMax  = time.Minute
)

// LegacyHeaders is a set of headers from before RateLimit and RateLimit-Policy. All tell of the most restrictive limit only.
type LegacyHeaders string

// The sets. The first two differ in X-RateLimit-Reset, which is the oldest misunderstanding between services and clients.
const (
	// LegacyXEpoch is X-RateLimit-Limit, -Remaining and -Reset, the time of reset in seconds since 1970.
	legacyXEpoch LegacyHeaders = "x-ratelimit-epoch"
	// LegacyXDelta is the same with the seconds until reset.
	legacyXDelta LegacyHeaders = "x-ratelimit-delta"
	// LegacyDraft is RateLimit-Limit, -Remaining and -Reset in seconds, as drafts 03 to 06 of the specification had them.
	legacyDraft LegacyHeaders = "ratelimit"
)

// CheckLegacyHeaders refuses unknown sets, repeated ones, and two that set the same headers.
func CheckLegacyHeaders(sets []LegacyHeaders) error {
	for i, set := range sets {
		switch set {
		case legacyXEpoch, legacyXDelta, legacyDraft:
		default:
			return fmt.Errorf("legacy headers: %q is not %s, %s or %s", set, legacyXEpoch, legacyXDelta, legacyDraft)
		}
		if slices.Contains(sets[:i], set) {
			return fmt.Errorf("legacy headers: %s is there twice", set)
		}
	}
	if slices.Contains(sets, legacyXEpoch) && slices.Contains(sets, legacyXDelta) {
		return fmt.Errorf("legacy headers: %s and %s both say what X-RateLimit-Reset means; choose one", legacyXEpoch, legacyXDelta)
	}
	return nil
}

// writeLimits sets what the headers say of the enforced limits among the verdicts, the most restrictive first, and returns
// the longest t among them: Retry-After must not be earlier.
//
// When a limit has denied, t stands with those that did and that waiting helps with: when the others get more tokens, which
// they have enough of, or can never have enough of, is not what the client waits for.
func (s *Server) writeLimits(h http.Header, verdicts []gate.LimitVerdict) time.Duration {
	enforced := make([]*gate.LimitVerdict, 0, 8)
	for i := range verdicts {
		v := &verdicts[i]
		writeMode(h, v.Degraded)
		if !v.Shadow {
			enforced = append(enforced, v)
		}
	}
	if len(enforced) == 0 {
		return 0
	}
	slices.SortStableFunc(enforced, compareRestriction)
	denied := !enforced[0].Allowed
	policy, state := make([]byte, 0, 256), make([]byte, 0, 256)
	longest := time.Duration(0)
	for i, v := range enforced[:min(len(enforced), namedMax)] {
		if i > 0 {
			policy, state = append(policy, ", "...), append(state, ", "...)
		}
		policy = appendPolicy(policy, v)
		state = appendItem(state, v.Rule)
		state = appendParameter(state, ";r=", v.Remaining)
		if showsDelay(v, denied) {
			wait := delayOf(v)
			longest = max(longest, wait)
			state = appendParameter(state, ";t=", ceil(wait, time.Second))
		}
	}
	set(h, headerRateLimitPolicy, string(policy))
	set(h, headerRateLimit, string(state))
	s.writeLegacy(h, enforced[0])
	return longest
}

// writeMode says that limits were decided without Redis although there is one. A limit that is open then has no verdict.
func writeMode(h http.Header, degraded bool) {
	if degraded {
		set(h, headerRateLimitMode, "local")
	}
}

// appendPolicy appends what a limit allows: so many requests in so many seconds, or so many at a time.
func appendPolicy(b []byte, v *gate.LimitVerdict) []byte {
	b = appendItem(b, v.Rule)
	b = appendParameter(b, ";q=", v.Quota)
	if v.Concurrent {
		b = append(b, ";qu="...)
		return appendItem(b, unitConcurrency)
	}
	return appendParameter(b, ";w=", max(v.WindowSeconds, 1))
}

// showsWait reports whether t says something. When a lease comes back depends on its holder; only a denial makes a guess.
// A limit that never lets the request pass has no t: whatever it was, a client would come back then with the same request.
func showsDelay(v *gate.LimitVerdict, denied bool) bool {
	if !v.Allowed {
		return !v.Never
	}
	return !denied && !v.Concurrent
}

// writeLegacy sets the headers that came before the structured ones. Their clients expect all three of them, so -Reset also
// stands with a limit that never lets the request pass: it is when there is one more token.
func (s *Server) writeLegacy(h http.Header, v *gate.LimitVerdict) {
	for _, legacy := range s.cfg.LegacyHeaders {
		prefix, reset := "X-RateLimit-", ceil(delayOf(v), time.Second)
		switch legacy {
		case legacyXEpoch:
			reset = ceil(time.Duration(s.now().Add(delayOf(v)).UnixNano()), time.Second)
		case legacyXDelta:
		case legacyDraft:
			prefix = "RateLimit-"
		}
		set(h, prefix+"Limit", strconv.FormatInt(v.Limit, 10))
		set(h, prefix+"Remaining", strconv.FormatInt(v.Remaining, 10))
		set(h, prefix+"Reset", strconv.FormatInt(reset, 10))
	}
}

// retryAfter is the value of Retry-After: at least 1, not before wait, and with jitter if a window has denied.
func (s *Server) retryAfter(wait time.Duration, verdicts []gate.LimitVerdict) string {
	window := slices.ContainsFunc(verdicts, func(v gate.LimitVerdict) bool { return v.Window && !v.Shadow && !v.Allowed })
	if spread := min(wait/jitterPart, jitterMax); window && spread > 0 {
		wait += s.jitter(spread)
	}
	return strconv.FormatInt(max(ceil(wait, time.Second), 1), 10)
}

// randomUpTo is a random time from 0 to limit.
func randomUpTo(limit time.Duration) time.Duration { return rand.N(limit + 1) }

// untilTokens is when the limit lets more pass: the same request after a denial, one more token otherwise.
func delayOf(v *gate.LimitVerdict) time.Duration {
	if !v.Allowed && !v.Never {
		return v.RetryAfter
	}
	return v.Reset
}

// compareRestriction orders the most restrictive limit first: those that never allow it, then those that denied, the longest
// wait before the shortest, then those with the fewest tokens left.
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
