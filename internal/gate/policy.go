package gate

import (
	"strconv"
	"time"

	"github.com/quotasvc/quotasvc/internal/ratelimit/rule"
)

// structuredMax is the largest integer of a structured field (RFC 9651 3.3.1).
const structuredMax = 999_999_999_999_999

// policyOf returns the rule's member of the RateLimit-Policy header: q is what a full bucket holds, w the seconds in which an empty one
// fills, at least 1. Ids have no character that a structured field escapes.
func policyOf(r *rule.Rule) string {
	text := `"` + r.ID + `";q=` + strconv.FormatInt(min(r.Burst, structuredMax), 10)
	if r.Kind == rule.KindConcurrency {
		return text + `;qu="concurrent-requests"`
	}
	fills := r.Rate.Period
	if r.Kind == rule.KindTokenBucket || r.Kind == rule.KindLeakyBucket {
		e := r.Explain(time.Time{}, nil, false, 1, r.Burst)
		fills = e.LongestWait
	}
	seconds := int64((fills + time.Second - 1) / time.Second)
	return text + ";w=" + strconv.FormatInt(min(max(seconds, 1), structuredMax), 10)
}
