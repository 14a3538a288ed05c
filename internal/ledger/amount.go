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

// saturatingAdd returns a+b for values that are not negative, stopping at the largest int64. It serves demand sums, where
// "at least this much" is all that is asked.
func saturatingAdd(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}
