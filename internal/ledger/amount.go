package ledger

import (
	"math"

	"github.com/quotasvc/quotasvc/internal/bound"
)

// MaxAmount is the largest amount a request, a grant or a balance may carry.
const MaxAmount int64 = bound.MaxAmount

// addAmounts returns a+b for amounts that are not negative, and false when the sum is over MaxAmount.
func addAmounts(a, b int64) (int64, bool) {
	if a < 0 || b < 0 || a > MaxAmount-b {
		return 0, false
	}
	return a + b, true
}

// SaturatingAdd returns a+b for values that are not negative, or the largest int64 if the sum is larger. Sums of demands use it: they
// are lower bounds.
func SaturatingAdd(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}
