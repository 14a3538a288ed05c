package catalog

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/quotasvc/quotasvc/internal/kit/metric"
)

// metrics are the metrics of a Catalog.
type metrics struct {
	reloads *prometheus.CounterVec
	lost    prometheus.Counter

	hits, misses, stale prometheus.Counter
}

func newMetrics(reg prometheus.Registerer, c *Catalog) *metrics {
	lookups := metric.CounterVec(reg, "quotasvc_catalog_tenant_lookups_total",
		"Lookups of tenants: in memory (hit), read from PostgreSQL (miss), or stale because PostgreSQL was down (stale).",
		"result")
	m := &metrics{
		reloads: metric.CounterVec(reg, "quotasvc_catalog_reloads_total",
			"Reloads of meters, plans, limits and blocks.", "result"),
		lost: metric.Counter(reg, "quotasvc_catalog_listener_lost_total",
			"Losses of the connection that receives notifications of changes."),
		hits: lookups.WithLabelValues("hit"), misses: lookups.WithLabelValues("miss"), stale: lookups.WithLabelValues("stale"),
	}
	metric.Flag(reg, "quotasvc_catalog_listening", "1 while notifications of changes are received.", c.isListening)
	metric.GaugeFunc(reg, "quotasvc_catalog_age_seconds",
		"Time since the last read of meters, plans and limits. An old read may be current.", func() float64 {
			at := c.readAt.Load()
			if at == 0 {
				return 0
			}
			return c.cfg.Now().Sub(time.Unix(0, at)).Seconds()
		})
	return m
}

// reloaded counts a reload, with its result.
func (m *metrics) reloaded(err error) {
	result := "done"
	if err != nil {
		result = "failed"
	}
	m.reloads.WithLabelValues(result).Inc()
}
