package webhooks

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/quotasvc/quotasvc/internal/kit/metric"
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
		attempts: metric.CounterVec(reg, "quotasvc_webhook_attempts_total",
			"Calls of receivers by this instance, by outcome: delivered or failed.", "outcome"),
		ends: metric.CounterVec(reg, "quotasvc_webhook_deliveries_total",
			"Deliveries that ended on this instance, by status: delivered, dead or skipped.", "status"),
		latency: metric.Histogram(reg, "quotasvc_webhook_call_seconds",
			"Duration of calls of receivers.", []float64{.01, .03, .1, .3, 1, 3, 8}),
		pending: metric.Gauge(reg, "quotasvc_webhook_pending_deliveries",
			"Deliveries that wait for an attempt, on all instances; counted up to 100000."),
		oldest: metric.Gauge(reg, "quotasvc_webhook_oldest_pending_seconds",
			"Age of the oldest waiting delivery; 0 if there is none."),
		webhooks: metric.Gauge(reg, "quotasvc_webhook_queues", "Webhooks whose queues this instance serves."),
	}
	for _, outcome := range []string{"delivered", "failed"} {
		m.attempts.WithLabelValues(outcome)
	}
	for _, status := range []string{StatusDelivered, StatusDead, StatusSkipped} {
		m.ends.WithLabelValues(status)
	}
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
