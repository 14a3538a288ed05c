package rule

import (
	"strconv"
	"time"
)

// structuredMax is the largest integer that a structured HTTP field may contain (RFC 9651 3.3.1).
const structuredMax = 999_999_999_999_999

// Refills returns the longest time until a bucket of the rule is full again, or 0 for a rule of kind concurrency.
func (r *Rule) Refills() time.Duration {
	if r.Kind == KindConcurrency {
		return 0
	}
	e := r.Explain(time.Time{}, nil, false, 1, r.Burst)
	return e.LongestWait
}

// Policy returns the rule's member of the RateLimit-Policy header. Its parameter q is the capacity. w is the time in
// which an empty bucket fills, in seconds, at least 1. The ID needs no escaping, because ids contain no character
// that a structured field must escape.
func (r *Rule) Policy() string {
	text := `"` + r.ID + `";q=` + strconv.FormatInt(min(r.Burst, structuredMax), 10)
	if r.Kind == KindConcurrency {
		return text + `;qu="concurrent-requests"`
	}
	fills := r.Rate.Period
	if r.Kind == KindTokenBucket || r.Kind == KindLeakyBucket {
		fills = r.Explain(time.Time{}, nil, false, 1, r.Burst).Fills
	}
	seconds := int64((fills + time.Second - 1) / time.Second)
	return text + ";w=" + strconv.FormatInt(min(max(seconds, 1), structuredMax), 10)
}
