package gate

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// gateMetrics are the metrics of a Gate. Their labels are operations, codes and sources, each from a fixed set. Only
// the labels of the metrics in catalog are names of plans and meters.
type gateMetrics struct {
	decisions *prometheus.CounterVec
	sources   *prometheus.CounterVec
	refunds   *prometheus.CounterVec
	loads     prometheus.Counter
	loadBatch prometheus.Histogram
	catalog   *catalogCounts
}

func newGateMetrics(reg prometheus.Registerer) *gateMetrics {
	with := promauto.With(reg)
	return &gateMetrics{
		decisions: counters(with, "quotasvc_decisions_total",
			"Decisions by operation (check, consume, debit, hold, acquire, ...) and outcome: allowed, replayed, or "+
				"the code of the refusal.", "operation", "outcome"),
		sources: counters(with, "quotasvc_checks_total",
			"Checks by the source of their balances: ledger (PostgreSQL), cache (Redis), local (this process).",
			"source", "degraded"),
		refunds: counters(with, "quotasvc_limit_refunds_total",
			"Refunds of charged limits after a debit that was not made, by outcome: done or lost.", "outcome"),
		loads: with.NewCounter(prometheus.CounterOpts{
			Name: "quotasvc_balance_loads_total",
			Help: "Checks and refreshes of balances that PostgreSQL answered.",
		}),
		loadBatch: with.NewHistogram(prometheus.HistogramOpts{
			Name:    "quotasvc_balance_load_batch_questions",
			Help:    "Checks answered by one read of PostgreSQL.",
			Buckets: prometheus.ExponentialBuckets(1, 2, 7), // 1..loadBatchMax
		}),
		catalog: newCatalogCounts(reg),
	}
}

func counters(with promauto.Factory, name, help string, labels ...string) *prometheus.CounterVec {
	return with.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
}
