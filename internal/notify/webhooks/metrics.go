package webhooks

import (
	"github.com/prometheus/client_golang/prometheus"
)

// metrics are the metrics of deliveries. No metric has a webhook as a label, because there may be hundreds of
// webhooks.
type metrics struct {
	attempts        *prometheus.CounterVec
	ends            *prometheus.CounterVec
	latency         prometheus.Histogram
	pending, oldest prometheus.Gauge
	webhooks        prometheus.Gauge
}

func newMetrics(reg prometheus.Registerer) *metrics {
	m := &metrics{
		attempts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "quotasvc_webhook_attempts_total", Help: "Calls of receivers by this instance, by outcome: delivered or failed.",
		}, []string{"outcome"}),
		ends: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "quotasvc_webhook_deliveries_total", Help: "Deliveries that ended on this instance, by status: delivered, dead or skipped.",
		}, []string{"status"}),
		latency: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "quotasvc_webhook_call_seconds", Help: "Duration of calls of receivers.", Buckets: []float64{.01, .03, .1, .3, 1, 3, 8},
		}),
		pending: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "quotasvc_webhook_pending_deliveries", Help: "Deliveries that wait for an attempt, on all instances; counted up to 100000.",
		}),
		oldest: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "quotasvc_webhook_oldest_pending_seconds", Help: "Age of the oldest waiting delivery; 0 if there is none.",
		}),
		webhooks: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "quotasvc_webhook_queues", Help: "Webhooks whose queues this instance serves.",
		}),
	}
	for _, outcome := range []string{"delivered", "failed"} {
		m.attempts.WithLabelValues(outcome)
	}
	for _, status := range []string{StatusDelivered, StatusDead, StatusSkipped} {
		m.ends.WithLabelValues(status)
	}
	reg.MustRegister(m.attempts, m.ends, m.latency, m.pending, m.oldest, m.webhooks)
	return m
}

// attempted counts a call with its outcome. status is the state of the delivery after the call.
func (m *metrics) attempted(status string, out Outcome) {
	outcome := "delivered"
	if out.Error != "" {
		outcome = "failed"
	}
	m.attempts.WithLabelValues(outcome).Inc()
	m.latency.Observe(out.Latency.Seconds())
	if status != StatusPending {
		m.ended(status)
	}
}

func (m *metrics) ended(status string) { m.ends.WithLabelValues(status).Inc() }
