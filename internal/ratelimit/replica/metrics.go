package replica

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/quotasvc/quotasvc/internal/kit/metric"
)

// Metrics are the Prometheus metrics of a Heartbeat.
type Metrics struct {
	live         prometheus.Gauge
	beatFailures prometheus.Counter
}

// NewMetrics creates the metrics and registers them. It panics if reg already has metrics of these names, which is a
// programming error. If reg is nil, the metrics are not registered.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	m := &Metrics{
		live: metric.Gauge(reg, "quotasvc_replicas_live",
			"Instances that decide limits in the same Redis, this one included, as of the last heartbeat."),
		beatFailures: metric.Counter(reg, "quotasvc_replicas_beat_failures_total",
			"Heartbeats of this instance that Redis did not answer."),
	}
	m.live.Set(1)
	return m
}
