package balances

import (
	"fmt"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/quotasvc/quotasvc/internal/ledger"
	"github.com/quotasvc/quotasvc/internal/testenv"
)

// One budget for all round trips of a flush made a long queue an outage: the flush failed, waited awayFor, and the queue grew.
func TestPublish_LongQueue_IsNoOutage(t *testing.T) {
	t.Parallel()
	c := startCache(t, testenv.RedisURL(t), Config{})
	all := make([]ledger.BalanceCopy, pendingMax)
	for i := range all {
		all[i] = *copyOf(fmt.Sprint("tenant", i), 1, time.Now())
	}
	c.Publish(all) // c is blind
	eventually(t, "all are published", func() bool { return testutil.ToFloat64(c.metrics.published) == pendingMax })
	if failed := testutil.ToFloat64(c.metrics.publishErrors); failed != 0 {
		t.Errorf("%v flushes failed", failed)
	}
}
