package balances

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/quotasvc/quotasvc/internal/kit/metric"
)

// metrics are the metrics of a Cache.
type metrics struct {
	published     prometheus.Counter
	publishErrors prometheus.Counter
	refused       prometheus.Counter
}

func newMetrics(reg prometheus.Registerer, pending, parked *pendingCopies) *metrics {
	m := &metrics{
		published: metric.Counter(reg, "quotasvc_balance_cache_published_total",
			"Balance copies written to Redis: the newest copy per balance and flush."),
		publishErrors: metric.Counter(reg, "quotasvc_balance_cache_publish_errors_total",
			"Flushes to Redis that failed. Their copies are sent again."),
		refused: metric.Counter(reg, "quotasvc_balance_cache_refused_total",
			"Balance copies that the Redis script rejected as invalid. Any value but 0 is a bug."),
	}
	metric.GaugeFunc(reg, "quotasvc_balance_cache_pending_copies", "Balance copies waiting to be written to Redis.",
		func() float64 { return float64(pending.len() + parked.len()) })
	metric.CounterFunc(reg, "quotasvc_balance_cache_dropped_total",
		"Balance copies that were not written to Redis because too many waited. Checks may use an older copy for up to QUOTASVC_CACHE_FRESH.",
		func() float64 { return float64(pending.droppedTotal() + parked.droppedTotal()) })
	return m
}
