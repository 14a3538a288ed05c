package balances

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// metrics are the metrics of a Cache.
type metrics struct {
	published     prometheus.Counter
	publishErrors prometheus.Counter
	refused       prometheus.Counter
}

func newMetrics(reg prometheus.Registerer, pending, parked *pendingCopies) *metrics {
	with := promauto.With(reg)
	with.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "quotasvc_balance_cache_pending_copies",
		Help: "Balance copies waiting to be written to Redis.",
	}, func() float64 { return float64(pending.len() + parked.len()) })
	with.NewCounterFunc(prometheus.CounterOpts{
		Name: "quotasvc_balance_cache_dropped_total",
		Help: "Balance copies that were not written to Redis because too many waited. " +
			"Checks may use an older copy for up to QUOTASVC_CACHE_FRESH.",
	}, func() float64 { return float64(pending.droppedTotal() + parked.droppedTotal()) })
	counter := func(name, help string) prometheus.Counter {
		return with.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	return &metrics{
		published: counter("quotasvc_balance_cache_published_total",
			"Balance copies written to Redis: the newest copy per balance and flush."),
		publishErrors: counter("quotasvc_balance_cache_publish_errors_total",
			"Flushes to Redis that failed. Their copies are sent again."),
		refused: counter("quotasvc_balance_cache_refused_total",
			"Balance copies that the Redis script rejected as invalid. Any value but 0 is a bug."),
	}
}
