package redisstore

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/quotasvc/quotasvc/internal/kit/metric"
)

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
		// 50 us is a loopback round trip; 200 ms is beyond every request's budget.
		scriptSeconds: metric.HistogramVec(reg, "quotasvc_redis_script_seconds",
			"Time of one pipeline of script calls, from sending to the last reply.",
			prometheus.ExponentialBuckets(50e-6, 2, 13), "script"),
		noScript: metric.CounterVec(reg, "quotasvc_redis_noscript_total",
			"Script calls sent again with the source because the server did not have the script.", "script"),
		breakerOpen: metric.GaugeVec(reg, "quotasvc_limit_breaker_open",
			"1 while the breaker of a shard is open. The shard is redis, or the address of a master of a cluster.",
			"shard"),
		failures: metric.CounterVec(reg, "quotasvc_limit_backend_failures_total",
			"Requests that Redis did not answer, by cause.", "cause"),
		evicting: metric.Gauge(reg, "quotasvc_redis_evicting_masters",
			"Masters with another maxmemory-policy than noeviction. An evicted bucket counts as full: its limit admits everything again."),
		policyUnknown: metric.Gauge(reg, "quotasvc_redis_policy_unknown_masters",
			"Masters that answer but do not report their maxmemory-policy."),
	}
	for _, cause := range causes() {
		m.failures.WithLabelValues(cause) // this creates the series with 0, so that a rate sees its first increase
	}
	return m
}
