package catalog

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics are the metrics of a Catalog.
type metrics struct {
	reloads *prometheus.CounterVec
	lost    prometheus.Counter

	hits, misses, stale prometheus.Counter
}

func newMetrics(reg prometheus.Registerer, c *Catalog) *metrics {
	lookups := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "quotasvc_catalog_tenant_lookups_total",
		Help: "Lookups of tenants: in memory (hit), read from PostgreSQL (miss), or stale because PostgreSQL was down (stale).",
	}, []string{"result"})
	m := &metrics{
		reloads: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "quotasvc_catalog_reloads_total",
			Help: "Reloads of meters, plans, limits and blocks.",
		}, []string{"result"}),
		lost: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "quotasvc_catalog_listener_lost_total",
			Help: "Losses of the connection that receives notifications of changes.",
		}),
		hits: lookups.WithLabelValues("hit"), misses: lookups.WithLabelValues("miss"), stale: lookups.WithLabelValues("stale"),
	}
	if reg == nil {
		return m
	}
	reg.MustRegister(lookups, m.reloads, m.lost,
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "quotasvc_catalog_listening",
			Help: "1 while notifications of changes are received.",
		}, func() float64 {
			if c.isListening() {
				return 1
			}
			return 0
		}),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "quotasvc_catalog_age_seconds",
			Help: "Time since the last read of meters, plans and limits. An old read may be current.",
		}, func() float64 {
			at := c.readAt.Load()
			if at == 0 {
				return 0
			}
			return c.cfg.Now().Sub(time.Unix(0, at)).Seconds()
		}),
	)
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
