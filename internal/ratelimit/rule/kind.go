package rule

import (
	"fmt"
)

// Kind is the way in which the tokens of a bucket come back. The script uses the same values.
type Kind int

const (
	// KindTokenBucket is a bucket that is refilled continuously at the rate, up to the burst.
	KindTokenBucket Kind = 1
	// KindLeakyBucket is a queue of at most Burst requests, which are processed at the rate. An admitted request has
	// to wait for the Delay in its verdict, so requests are evenly spaced.
	KindLeakyBucket Kind = 2
	// KindFixedWindow counts tokens in windows: minutes, hours, days, weeks or months of a calendar, or other periods
	// that are counted from 1970-01-01 UTC. Each window starts from zero. Around a start up to twice the limit may
	// pass.
	KindFixedWindow Kind = 3
	// KindSlidingWindow counts the tokens of the current window and a part of the tokens of the previous window. This
	// is the part that the sliding window still covers, if the tokens of the previous window were taken evenly.
	KindSlidingWindow Kind = 4
	// KindSlidingLog stores the time of each token, up to 1,000 of them. It is exact in every interval.
	KindSlidingLog Kind = 5
	// KindConcurrency bounds the number of leases that are held at a time. It has a separate script (lua/leases.lua),
	// and no charges.
	KindConcurrency Kind = 6
)

// names returns the kind's name in the API, and its letter in keys. The letter is part of each key, because the
// stored values of two kinds have different meanings. names is a switch, because it is called for every verdict and
// must be fast.
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

// String returns the kind's name in the API.
func (k Kind) String() string {
	name, _ := k.names()
	return name
}

// letter returns the letter of the kind in keys.
func (k Kind) letter() string {
	_, letter := k.names()
	return letter
}

// Windowed reports whether the tokens of many buckets come back at the same instant. If they do, denied callers
// should spread their retries.
func (k Kind) Windowed() bool {
	return k == KindFixedWindow || k == KindSlidingWindow
}

// Refills reports whether tokens come back continuously at the rate.
func (k Kind) Refills() bool { return k == KindTokenBucket || k == KindLeakyBucket }

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
