package lane

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics measures all lanes of a process. The only label is the lane's name. Names are constants of the program, so
// the number of series is bounded.
type Metrics struct {
	depth *prometheus.Desc
	batch *prometheus.HistogramVec
	wait  *prometheus.HistogramVec

	mu    sync.Mutex
	lanes map[depther]string
}

// depther is a Lane with items and answers of any type.
type depther interface{ Depth() int }

// NewMetrics creates the metrics and registers them with reg, unless reg is nil. It panics if reg already has metrics
// with these names.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	m := &Metrics{
		depth: prometheus.NewDesc("quotasvc_lane_depth_items",
			"Items waiting in the lane's queue, including items whose caller gave up.", []string{"lane"}, nil),
		batch: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "quotasvc_lane_batch_items",
			Help: "Items processed in one batch.",
			// Powers of two from one item to 4096, above the largest batch in use.
			Buckets: prometheus.ExponentialBuckets(1, 2, 13),
		}, []string{"lane"}),
		wait: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "quotasvc_lane_wait_seconds",
			Help: "Time that an item was queued before its batch started.",
			// From 50 us (the time until an idle lane starts a batch) to 1.6 s (longer than a useful request
			// deadline).
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

// Collect implements prometheus.Collector. The depths of lanes with the same name are added.
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

// track adds l to the lanes whose depth is measured. untrack removes l again.
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
