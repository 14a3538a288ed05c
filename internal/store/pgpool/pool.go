package pgpool

import (
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
)

// collector reads the counters of one pool.
type collector struct {
	pool                       *pgxpool.Pool
	inUse, size, waits, waited *prometheus.Desc
}

// Measure registers the metrics of a pool under its name. It panics if the registry already has a pool with this
// name.
func Measure(reg prometheus.Registerer, name string, pool *pgxpool.Pool) {
	labels := prometheus.Labels{"pool": name}
	reg.MustRegister(&collector{
		pool:   pool,
		inUse:  prometheus.NewDesc("quotasvc_postgres_connections_in_use", "Connections to PostgreSQL in use, by pool.", nil, labels),
		size:   prometheus.NewDesc("quotasvc_postgres_connections_max", "Size of the pool of connections to PostgreSQL.", nil, labels),
		waits:  prometheus.NewDesc("quotasvc_postgres_connection_waits_total", "Times that work waited because no connection of the pool was free, or had to be opened.", nil, labels),
		waited: prometheus.NewDesc("quotasvc_postgres_connection_wait_seconds_total", "Time spent waiting for a connection of the pool.", nil, labels),
	})
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(out chan<- *prometheus.Desc) { prometheus.DescribeByCollect(c, out) }

// Collect implements prometheus.Collector.
func (c *collector) Collect(out chan<- prometheus.Metric) {
	s := c.pool.Stat()
	out <- prometheus.MustNewConstMetric(c.inUse, prometheus.GaugeValue, float64(s.AcquiredConns()))
	out <- prometheus.MustNewConstMetric(c.size, prometheus.GaugeValue, float64(s.MaxConns()))
	out <- prometheus.MustNewConstMetric(c.waits, prometheus.CounterValue, float64(s.EmptyAcquireCount()))
	out <- prometheus.MustNewConstMetric(c.waited, prometheus.CounterValue, s.AcquireDuration().Seconds())
}
