package gate

import "github.com/prometheus/client_golang/prometheus"

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
		decisions: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "quotasvc_decisions_total",
			Help: "Decisions by operation (check, consume, debit, hold, acquire, ...) and outcome: allowed, replayed, or the code " +
				"of the refusal.",
		}, []string{"operation", "outcome"}),
		sources: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "quotasvc_checks_total",
			Help: "Checks by the source of their balances: ledger (PostgreSQL), cache (Redis), local (this process).",
		}, []string{"source", "degraded"}),
		refunds: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "quotasvc_limit_refunds_total",
			Help: "Refunds of charged limits after a debit that was not made, by outcome: done or lost.",
		}, []string{"outcome"}),
		loads: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "quotasvc_balance_loads_total",
			Help: "Checks and refreshes of balances that PostgreSQL answered.",
		}),
		loadBatch: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "quotasvc_balance_load_batch_questions",
			Help:    "Checks answered by one read of PostgreSQL.",
			Buckets: prometheus.ExponentialBuckets(1, 2, 7), // 1..loadBatchMax
		}),
		catalog: newCatalogCounts(reg),
	}
	if reg != nil {
		reg.MustRegister(m.decisions, m.sources, m.refunds, m.loads, m.loadBatch)
	}
	return m
}
