package ratelimit

import (
	"github.com/prometheus/client_golang/prometheus"
)

// Metrics are a process's measurements of its limits. Labels are rule ids, kinds and names from the program: never a
// tenant or a subject.
type Metrics struct {
	decisions   *prometheus.CounterVec
	evalSeconds *prometheus.HistogramVec
	vectorSize  prometheus.Histogram
	noScript    *prometheus.CounterVec
	rebased     prometheus.Counter
	corrupt     prometheus.Counter
	stale       prometheus.Counter
	degraded    prometheus.Gauge
	shardAway   *prometheus.GaugeVec
	failures    *prometheus.CounterVec
	localLevels prometheus.Gauge
	leases      *prometheus.CounterVec
	held        *leaseGauge

	stagedRefunds *prometheus.CounterVec
}

// NewMetrics makes the metrics and registers them. It panics if reg has metrics of these names already, which is a
// programming error. A nil reg leaves them unregistered.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	m := &Metrics{
		decisions: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "quotasvc_limit_decisions_total",
			Help: "Verdicts per rule, of checks and charges. Outcomes would_deny and would_never are a shadow rule's.",
		}, []string{"rule", "kind", "outcome", "mode"}),
		evalSeconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "quotasvc_redis_script_seconds",
			Help: "Time of one pipeline of script calls, from sending to the last reply.",
			// 50 us is a loopback round trip; 200 ms is beyond every decision's budget.
			Buckets: prometheus.ExponentialBuckets(50e-6, 2, 13),
		}, []string{"script"}),
		vectorSize: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "quotasvc_limit_vector_requests",
			Help:    "Requests of one tenant decided in one script call.",
			Buckets: prometheus.ExponentialBuckets(1, 2, 7), // 1..MaxVector
		}),
		noScript: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "quotasvc_redis_noscript_total",
			Help: "Script calls sent again in full because the server did not have the script.",
		}, []string{"script"}),
		rebased: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "quotasvc_limit_clock_rebased_total",
			Help: "Buckets moved back because Redis' clock was set back by more than 5 s.",
		}),
		corrupt: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "quotasvc_limit_corrupt_total",
			Help: "Decisions that met a stored value which is not a bucket.",
		}),
		stale: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "quotasvc_limit_stale_windows_total",
			Help: "Requests sent to Redis again because its clock was in another window of the calendar.",
		}),
		degraded: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "quotasvc_limit_degraded",
			Help: "1 while limits are decided without Redis because Redis, or a master of its cluster, is away.",
		}),
		shardAway: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "quotasvc_limit_breaker_open",
			Help: "1 while a shard's breaker is open. The shard is redis, or a master's address in a cluster.",
		}, []string{"shard"}),
		failures: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "quotasvc_limit_backend_failures_total",
			Help: "Decisions that Redis should have made and did not, by cause.",
		}, []string{"cause"}),
		stagedRefunds: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "quotasvc_limit_slot_refunds_total",
			Help: "Charges of one slot of a cluster given back because another slot denied or failed, by outcome: done or lost.",
		}, []string{"outcome"}),
		localLevels: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "quotasvc_limit_local_levels",
			Help: "Bucket levels held in the process.",
		}),
		leases: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "quotasvc_limit_leases_total",
			Help: "Leases of concurrency limits by operation (acquire, renew, release, count) and outcome.",
		}, []string{"rule", "operation", "outcome", "mode"}),
		held: newLeaseGauge(),
	}
	if reg != nil {
		reg.MustRegister(m.decisions, m.evalSeconds, m.vectorSize, m.noScript, m.rebased, m.corrupt, m.stale, m.degraded, m.shardAway,
			m.failures, m.stagedRefunds, m.localLevels, m.leases, m.held)
	}
	return m
}

// outcomeLabel is the label of a verdict.
func outcomeLabel(v Verdict) string {
	switch {
	case v.Unknown:
		return "error"
	case v.Allowed:
		return "allow"
	case v.Never && v.Shadow:
		return "would_never"
	case v.Never:
		return "never"
	case v.Shadow:
		return "would_deny"
	default:
		return "deny"
	}
}

// count counts a decision's verdicts.
func (m *Metrics) count(d Decision) {
	for _, v := range d.Verdicts {
		m.decisions.WithLabelValues(v.Rule.ID, v.Rule.Kind.String(), outcomeLabel(v), v.Mode.String()).Inc()
	}
}
