package denial

import "github.com/prometheus/client_golang/prometheus"

// metrics counts denials that were lost, or that were counted under Other. The metric quotasvc_decisions_total counts
// all denials.
type metrics struct {
	counts, explanations, named, shadows prometheus.Counter
	weeks                                prometheus.Gauge
}

func newMetrics(reg prometheus.Registerer) *metrics {
	lost := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "quotasvc_denials_lost_total",
		Help: "Denials that were not stored because there was no room, no PostgreSQL or no partition, by what is lost: count or explanation.",
	}, []string{"what"})
	m := &metrics{
		counts: lost.WithLabelValues("count"), explanations: lost.WithLabelValues("explanation"),
		named: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "quotasvc_denials_other_total",
			Help: "Denials that are counted without their meter and rule, as (other): their tenant had too many of both in a minute.",
		}),
		shadows: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "quotasvc_shadow_counts_lost_total",
			Help: "Requests that limits in shadow mode would have denied, or would have passed although another limit denied them, and that were not counted because there was no room, no PostgreSQL or no partition.",
		}),
		weeks: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "quotasvc_denials_partitions_ahead",
			Help: "Weeks after the current one that have partitions for counts of denials and of shadow limits. Below 0: denials or shadow limits are not counted now.",
		}),
	}
	reg.MustRegister(lost, m.named, m.shadows, m.weeks)
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
