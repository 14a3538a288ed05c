package rule

import (
	"fmt"
)

// Kind is the way in which the tokens of a bucket come back. The script uses the same values.
type Kind int

const (
	// KindTokenBucket refills continuously at the rate up to the burst.
	KindTokenBucket Kind = 1
	// KindLeakyBucket is a queue with the length of the burst, which is worked off at the rate. An admitted request
	// has to wait for the delay in its verdict, so requests are evenly spaced.
	KindLeakyBucket Kind = 2
	// KindFixedWindow counts from zero at each start of a minute, hour, day, week or month of a calendar, or of
	// another period since the epoch. Around a start it may pass twice its count.
	KindFixedWindow Kind = 3
	// KindSlidingWindow adds to the count of the current window a part of the previous window's count: the part that
	// the sliding window still covers, as if that count had been spread evenly.
	KindSlidingWindow Kind = 4
	// KindSlidingLog stores the time of each token, up to 1,000 of them. It is exact in every interval.
	KindSlidingLog Kind = 5
	// KindConcurrency bounds the number of leases at a time. It has a separate script, and no charges.
	KindConcurrency Kind = 6
)

// names returns the kind as the API writes it, and its letter in keys. The letter is part of the key because the
// states of two kinds have different meanings. Every verdict needs the name, and a switch is fast.
func (k Kind) names() (name, letter string) {
	switch k {
	case KindTokenBucket:
		return "token_bucket", "t"
	case KindLeakyBucket:
		return "leaky_bucket", "l"
	case KindFixedWindow:
		return "fixed_window", "f"
	case KindSlidingWindow:
		return "sliding_window", "s"
	case KindSlidingLog:
		return "sliding_log", "g"
	case KindConcurrency:
		return "concurrency", "c"
	default:
		return fmt.Sprintf("kind(%d)", int(k)), ""
	}
}

// String returns the kind as the API writes it.
func (k Kind) String() string {
	name, _ := k.names()
	return name
}

// letter returns the letter of the kind in keys.
func (k Kind) letter() string {
	_, letter := k.names()
	return letter
}

// Windowed reports whether tokens come back all at once, at an instant that many buckets share. If so, callers that
// were denied should spread their retries.
func (k Kind) Windowed() bool {
	return k == KindFixedWindow || k == KindSlidingWindow
}

// parseKind reads a kind as String writes it; empty is token_bucket.
func parseKind(s string) (Kind, error) {
	if s == "" {
		return KindTokenBucket, nil
	}
	for k := KindTokenBucket; k <= KindConcurrency; k++ {
		if s == k.String() {
			return k, nil
		}
	}
	return 0, &FieldError{"kind", fmt.Sprintf(
		"%q is not token_bucket, leaky_bucket, fixed_window, sliding_window, sliding_log or concurrency", clip(s))}
}
