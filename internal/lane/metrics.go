package lane

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics are the measurements of all lanes of a process. Their only label is the lane's name, which is chosen by the
// program and never by a request, so the number of series is bounded.
type Metrics struct {
	depth *prometheus.Desc
	batch *prometheus.HistogramVec
	wait  *prometheus.HistogramVec

	mu    sync.Mutex
	lanes map[depther]string
}

// depther is any Lane, whatever its types.
type depther interface{ Depth() int }

// NewMetrics makes the metrics and registers them. It panics if reg has metrics of these names already, which is a
// programming error. A nil reg leaves them unregistered.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	m := &Metrics{
		depth: prometheus.NewDesc("quotasvc_lane_depth_items",
			"Items waiting in the lane's queue, including those whose caller has gone.", []string{"lane"}, nil),
		batch: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "quotasvc_lane_batch_items",
			Help: "Items processed in one batch.",
			// Powers of two from a lone item to beyond the largest batch in use.
			Buckets: prometheus.ExponentialBuckets(1, 2, 13),
		}, []string{"lane"}),
		wait: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "quotasvc_lane_wait_seconds",
			Help: "Time an item spent queued before its batch started.",
			// From 50 us (an idle lane's hand-over) to 1.6 s (beyond any request's deadline that is worth keeping).
			Buckets: prometheus.ExponentialBuckets(50e-6, 2, 16),
		}, []string{"lane"}),
		lanes: make(map[depther]string),
	}
	if reg != nil {
		reg.MustRegister(m)
	}
	return m
}

// Describe implements prometheus.Collector.
func (m *Metrics) Describe(ch chan<- *prometheus.Desc) {
	ch <- m.depth
	m.batch.Describe(ch)
	m.wait.Describe(ch)
}

// Collect implements prometheus.Collector. Lanes of one name are reported as one.
func (m *Metrics) Collect(ch chan<- prometheus.Metric) {
	depths := make(map[string]int)
	m.mu.Lock()
	for l, name := range m.lanes {
		depths[name] += l.Depth()
	}
	m.mu.Unlock()
	for name, depth := range depths {
		ch <- prometheus.MustNewConstMetric(m.depth, prometheus.GaugeValue, float64(depth), name)
	}
	m.batch.Collect(ch)
	m.wait.Collect(ch)
}

// track reports l's depth from now on, until untrack.
func (m *Metrics) track(l depther, name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.lanes[l] = name
}

func (m *Metrics) untrack(l depther) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.lanes, l)
}
