package transport

import (
	"net"
	"net/http"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics measure the connections of both listeners.
type metrics struct {
	open, most *prometheus.GaugeVec
	refused    *prometheus.CounterVec
}

func newMetrics(reg prometheus.Registerer) *metrics {
	labels := []string{"listener"}
	m := &metrics{
		open:    prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "quotasvc_http_connections", Help: "Open connections of clients, by listener (api, ops)."}, labels),
		most:    prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "quotasvc_http_connections_max", Help: "Most connections that are accepted at a time, by listener."}, labels),
		refused: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "quotasvc_http_connections_refused_total", Help: "Connections closed unserved because there were too many, by listener."}, labels),
	}
	reg.MustRegister(m.open, m.most, m.refused)
	return m
}

// capped is a listener that closes connections beyond a maximum at once. They could wait in the kernel's queue instead, but then a load balancer
// waits with them and does not try the next instance.
type capped struct {
	net.Listener

	most    int64
	count   atomic.Int64
	open    prometheus.Gauge
	refused prometheus.Counter
}

func newCapped(l net.Listener, most int, m *metrics, name string) *capped {
	m.most.WithLabelValues(name).Set(float64(most))
	return &capped{Listener: l, most: int64(most), open: m.open.WithLabelValues(name), refused: m.refused.WithLabelValues(name)}
}

// Accept implements net.Listener.
func (c *capped) Accept() (net.Conn, error) {
	for {
		conn, err := c.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if c.count.Add(1) <= c.most {
			c.open.Inc()
			return conn, nil
		}
		c.count.Add(-1)
		c.refused.Inc()
		_ = conn.Close() // nothing was sent or read
	}
}

// observe is the server's ConnState: each connection that was accepted ends once.
func (c *capped) observe(_ net.Conn, state http.ConnState) {
	if state == http.StateClosed || state == http.StateHijacked {
		c.count.Add(-1)
		c.open.Dec()
	}
}
