package verifier

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
)

func TestWatch_Difference_IsReported(t *testing.T) {
	t.Parallel()
	b := newBundle(t).simple("acme", 10)
	mustDo(b, debitOf("acme", "k1", 3))
	b.exec("UPDATE balances SET used = used + 1, head_remaining = head_remaining - 1")
	differences := b.open(func(c *Config) { c.Every = time.Millisecond }).metrics.differences
	testenv.Eventually(t, func() bool { return testutil.ToFloat64(differences) > 0 })
	b.exec("UPDATE balances SET used = used - 1, head_remaining = head_remaining + 1")
	testenv.Eventually(t, func() bool { return testutil.ToFloat64(differences) == 0 })
}
