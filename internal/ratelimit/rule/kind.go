package rule

import (
	"fmt"
)

// Kind is what a rule's bucket does. The values are the script's.
type Kind int

const (
	// KindTokenBucket refills continuously at the rate up to the burst.
	KindTokenBucket Kind = 1
	// KindLeakyBucket is a queue of the burst's length that is worked off at the rate: an admitted request has to wait for
	// its turn (Verdict.Delay), so that what passes is evenly spaced.
	KindLeakyBucket Kind = 2
	// KindFixedWindow counts anew from each start of a minute, hour, day, week or month of a calendar, or of another period
	// since the epoch. Around a start it may pass twice its count.
	KindFixedWindow Kind = 3
	// KindSlidingWindow adds to the count of the current window the part of the last one's that the sliding window still
	// covers, as if it had been spread evenly.
	KindSlidingWindow Kind = 4
	// KindSlidingLog remembers when each token was taken, up to 1,000 of them: exact in every interval.
	KindSlidingLog Kind = 5
	// KindConcurrency bounds how much is under way at a time, by leases. Its script is leases, and only leases take it.
	KindConcurrency Kind = 6
)

// names are the kind as the API writes it and as the buckets' keys do. The letter is part of the key because another kind's
// state means something else. Every verdict asks for the name: a switch costs nothing.
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

// String is the kind as the API writes it.
func (k Kind) String() string {
	name, _ := k.names()
	return name
}

// letter is the kind in keys.
func (k Kind) letter() string {
	_, letter := k.names()
	return letter
}

// Windowed reports whether tokens come back all at once, at an instant that is the same for many: then those who were
// denied should not all return at that instant.
func (k Kind) Windowed() bool {
	return k == KindFixedWindow || k == KindSlidingWindow
}

// parseKind reads what String writes; "" is token_bucket.
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
