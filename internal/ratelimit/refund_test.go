package ratelimit

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/ratelimit/rule"
)

// TestRefund_ReturnsTheVerdictsAfterIt: Refund returns the same verdicts as a peek after it, in the order of the
// charges. The test runs in Redis and in local mode.
func TestRefund_ReturnsTheVerdictsAfterIt(t *testing.T) {
	t.Parallel()
	for where, client := range bothStores(t) {
		l := patientLimiter(t, client, settings{})
		req := Request{Tenant: "acme"}
		for i, kind := range []string{"sliding_log", "token_bucket", "fixed_window", "leaky_bucket", "sliding_window"} {
			r := compile(t, rule.Spec{ID: fmt.Sprint("r", i), Kind: kind, Rate: fmt.Sprintf("%d/day", 9+i)})
			req.Charges = append(req.Charges, Charge{Rule: r, Cost: int64(1 + i)})
		}
		mustConsume(t, l, req)
		d := mustConsume(t, l, req)
		after, err := l.Refund(t.Context(), d.Charged(req))
		require.True(t, err == nil && len(after) == len(req.Charges), "%s: %+v, %v", where, after, err)
		for i, want := range mustPeek(t, l, req).Verdicts {
			got := after[i]
			assert.True(t, got.Rule == want.Rule && !got.Unknown && got.Remaining == want.Remaining &&
				got.Remaining == d.Verdicts[i].Remaining+int64(1+i), "%s: %s: %+v; a peek says %+v", where, want.Rule.Kind, got, want)
		}
	}
}
