package gate

import "github.com/prometheus/client_golang/prometheus"

// cacheMetrics are the measurements of a BalanceCache.
type cacheMetrics struct {
	published     prometheus.Counter
	publishErrors prometheus.Counter
	refused       prometheus.Counter
}

func newCacheMetrics(reg prometheus.Registerer, pending *pendingCopies) *cacheMetrics {
	m := &cacheMetrics{
		published: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "quotasvc_balance_cache_published_total",
			Help: "Balance copies handed to Redis, the newest per balance and flush.",
		}),
		publishErrors: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "quotasvc_balance_cache_publish_errors_total",
			Help: "Flushes to Redis that failed; their copies are tried again.",
		}),
		refused: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "quotasvc_balance_cache_refused_total",
			Help: "Balance copies the script refused. Anything but 0 is a bug.",
		}),
	}
	if reg != nil {
		reg.MustRegister(m.published, m.publishErrors, m.refused,
			prometheus.NewGaugeFunc(prometheus.GaugeOpts{
				Name: "quotasvc_balance_cache_pending_copies",
				Help: "Balance copies waiting to be published.",
			}, func() float64 { return float64(pending.len()) }),
			prometheus.NewCounterFunc(prometheus.CounterOpts{
				Name: "quotasvc_balance_cache_dropped_total",
				Help: "Balance copies not published for want of room; checks may be answered from an older copy for up to the freshness bound.",
			}, func() float64 { return float64(pending.droppedTotal()) }),
		)
	}
	return m
}

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
