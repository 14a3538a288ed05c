package replica

import "github.com/prometheus/client_golang/prometheus"

// Metrics are the measurements of a heartbeat.
type Metrics struct {
	live         prometheus.Gauge
	beatFailures prometheus.Counter
}

// NewMetrics creates the metrics and registers them. It panics if reg has metrics of these names already, which is a
// programming error. A nil reg leaves them unregistered.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	m := &Metrics{
		live: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "quotasvc_replicas_live",
			Help: "Instances that decide limits in the same Redis, this one included, as of the last heartbeat.",
		}),
		beatFailures: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "quotasvc_replicas_beat_failures_total",
			Help: "Heartbeats of this instance that Redis did not answer.",
		}),
	}
	m.live.Set(1)
	if reg != nil {
		reg.MustRegister(m.live, m.beatFailures)
	}
	return m
}
