package rule

import "fmt"

// InWords returns the largest number of requests in any interval of the length of the rate's period, and a sentence
// that describes the rule. The rule may be of any kind except concurrency. e is the rule's explanation.
func (r *Rule) InWords(e *Explanation) (most int64, summary string) {
	most, summary = r.kindInWords(e)
	if r.Debt > 0 {
		summary += fmt.Sprintf("; charges after the fact take it to %d below zero at most", r.Debt)
	}
	if b := r.Ban; b.After > 0 {
		summary += fmt.Sprintf("; %d denials within %s ban the bucket for %s", b.After, b.Within, b.For)
	}
	return most, summary
}

func (r *Rule) kindInWords(e *Explanation) (most int64, summary string) {
	switch r.Kind {
	case KindTokenBucket:
		return r.Burst + r.Rate.Count, fmt.Sprintf("%d at once, then %s; at most %d within a second", r.Burst, r.Rate, e.InAnySecond)
	case KindLeakyBucket:
		return r.Burst + r.Rate.Count, fmt.Sprintf("spaced out to %s; up to %d requests wait, at most %s each", r.Rate, r.Burst, e.LongestWait)
	case KindFixedWindow:
		return 2 * r.Burst, fmt.Sprintf("%d in each window; up to twice as many in an interval across two windows", r.Burst)
	case KindSlidingWindow:
		return 2 * r.Burst, fmt.Sprintf("%s, estimated from two windows: exact for even traffic, up to twice as many for uneven traffic", r.Rate)
	case KindSlidingLog:
		return r.Burst, fmt.Sprintf("never more than %s in any interval", r.Rate)
	case KindConcurrency:
	}
	return 0, ""
}
