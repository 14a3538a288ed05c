package gate

import "github.com/prometheus/client_golang/prometheus"

// gateMetrics are the measurements of a Gate. Labels are operations, codes and sources: a fixed set.
type gateMetrics struct {
	decisions *prometheus.CounterVec
	sources   *prometheus.CounterVec
	refunds   *prometheus.CounterVec
	loads     prometheus.Counter
	loadBatch prometheus.Histogram
}

func newGateMetrics(reg prometheus.Registerer) *gateMetrics {
	m := &gateMetrics{
		decisions: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "quotasvc_decisions_total",
			Help: "Decisions by operation (check, consume, debit) and outcome: allowed, replayed or the code of the refusal.",
		}, []string{"operation", "outcome"}),
		sources: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "quotasvc_checks_total",
			Help: "Checks by where their balances came from.",
		}, []string{"source", "degraded"}),
		refunds: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "quotasvc_limit_refunds_total",
			Help: "Charged limits given back because the debit was not made, by outcome: done or lost.",
		}, []string{"outcome"}),
		loads: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "quotasvc_balance_loads_total",
			Help: "Questions of checks that PostgreSQL has answered.",
		}),
		loadBatch: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "quotasvc_balance_load_batch_questions",
			Help:    "Questions of checks that one read of PostgreSQL was about.",
			Buckets: prometheus.ExponentialBuckets(1, 2, 7), // 1..loadBatchMax
		}),
	}
	if reg != nil {
		reg.MustRegister(m.decisions, m.sources, m.refunds, m.loads, m.loadBatch)
	}
	return m
}
