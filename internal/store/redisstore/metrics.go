package redisstore

import "github.com/prometheus/client_golang/prometheus"

// Metrics are the metrics of a process's requests to Redis. The values of labels are shards or constants of the
// program, for example causes. They are never tenants.
type Metrics struct {
	scriptSeconds *prometheus.HistogramVec
	noScript      *prometheus.CounterVec
	breakerOpen   *prometheus.GaugeVec
	failures      *prometheus.CounterVec
	evicting      prometheus.Gauge
	policyUnknown prometheus.Gauge
}

// NewMetrics creates the metrics and registers them. It panics if reg already has metrics with these names: that is a
// programming error. A nil reg leaves them unregistered.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	m := &Metrics{
		scriptSeconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "quotasvc_redis_script_seconds",
			Help: "Time of one pipeline of script calls, from sending to the last reply.",
			// 50 us is a loopback round trip; 200 ms is beyond every request's budget.
			Buckets: prometheus.ExponentialBuckets(50e-6, 2, 13),
		}, []string{"script"}),
		noScript: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "quotasvc_redis_noscript_total",
			Help: "Script calls sent again with the source because the server did not have the script.",
		}, []string{"script"}),
		breakerOpen: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "quotasvc_limit_breaker_open",
			Help: "1 while the breaker of a shard is open. The shard is redis, or the address of a master of a cluster.",
		}, []string{"shard"}),
		failures: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "quotasvc_limit_backend_failures_total",
			Help: "Requests that Redis did not answer, by cause.",
		}, []string{"cause"}),
		evicting: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "quotasvc_redis_evicting_masters",
			Help: "Masters with another maxmemory-policy than noeviction. An evicted bucket counts as full: its limit admits everything again.",
		}),
		policyUnknown: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "quotasvc_redis_policy_unknown_masters",
			Help: "Masters that answer but do not report their maxmemory-policy.",
		}),
	}
	for _, cause := range causes() {
		m.failures.WithLabelValues(cause) // a rate needs the series at 0 first
	}
	if reg != nil {
		reg.MustRegister(m.scriptSeconds, m.noScript, m.breakerOpen, m.failures, m.evicting, m.policyUnknown)
	}
	return m
}
