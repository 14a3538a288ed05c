package denial

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/quotasvc/quotasvc/internal/kit/metric"
)

// metrics counts denials that were lost, or that were counted under Other. The metric quotasvc_decisions_total counts
// all denials.
type metrics struct {
	counts, explanations, named, shadows prometheus.Counter
	weeks                                prometheus.Gauge
}

func newMetrics(reg prometheus.Registerer) *metrics {
	lost := metric.CounterVec(reg, "quotasvc_denials_lost_total",
		"Denials that were not stored because there was no room, no PostgreSQL or no partition, by what is lost: count or explanation.",
		"what")
	m := &metrics{
		counts: lost.WithLabelValues("count"), explanations: lost.WithLabelValues("explanation"),
		named: metric.Counter(reg, "quotasvc_denials_other_total",
			"Denials that are counted without their meter and rule, as (other): their tenant had too many of both in a minute."),
		shadows: metric.Counter(reg, "quotasvc_shadow_counts_lost_total",
			"Requests that limits in shadow mode would have denied, or would have passed although another limit denied them, and that were not counted because there was no room, no PostgreSQL or no partition."),
		weeks: metric.Gauge(reg, "quotasvc_denials_partitions_ahead",
			"Weeks after the current one that have partitions for counts of denials and of shadow limits. Below 0: denials or shadow limits are not counted now."),
	}
	return m
}

func (m *metrics) miss(lost missed) {
	if lost == (missed{}) {
		return
	}
	m.counts.Add(float64(lost.counts))
	m.explanations.Add(float64(lost.explanations))
	m.named.Add(float64(lost.named))
}
