package gate

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/quotasvc/quotasvc/internal/kit/metric"
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
	m := &gateMetrics{
		decisions: metric.CounterVec(reg, "quotasvc_decisions_total",
			"Decisions by operation (check, consume, debit, hold, acquire, ...) and outcome: allowed, replayed, or the code "+
				"of the refusal.", "operation", "outcome"),
		sources: metric.CounterVec(reg, "quotasvc_checks_total",
			"Checks by the source of their balances: ledger (PostgreSQL), cache (Redis), local (this process).",
			"source", "degraded"),
		refunds: metric.CounterVec(reg, "quotasvc_limit_refunds_total",
			"Refunds of charged limits after a debit that was not made, by outcome: done or lost.", "outcome"),
		loads: metric.Counter(reg, "quotasvc_balance_loads_total",
			"Checks and refreshes of balances that PostgreSQL answered."),
		loadBatch: metric.Histogram(reg, "quotasvc_balance_load_batch_questions",
			"Checks answered by one read of PostgreSQL.", prometheus.ExponentialBuckets(1, 2, 7)), // 1..loadBatchMax
		catalog: newCatalogCounts(reg),
	}
	return m
}
