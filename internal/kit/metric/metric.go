package metric

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// Counter creates a counter.
func Counter(reg prometheus.Registerer, name, help string) prometheus.Counter {
	return promauto.With(reg).NewCounter(prometheus.CounterOpts{Name: name, Help: help})
}

// CounterVec creates a counter with labels.
func CounterVec(reg prometheus.Registerer, name, help string, labels ...string) *prometheus.CounterVec {
	return promauto.With(reg).NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
}

// CounterFunc creates a counter whose value is read from a function. The function is called at each scrape, from any
// goroutine.
func CounterFunc(reg prometheus.Registerer, name, help string, value func() float64) {
	promauto.With(reg).NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help}, value)
}

// Gauge creates a gauge.
func Gauge(reg prometheus.Registerer, name, help string) prometheus.Gauge {
	return promauto.With(reg).NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
}

// GaugeVec creates a gauge with labels.
func GaugeVec(reg prometheus.Registerer, name, help string, labels ...string) *prometheus.GaugeVec {
	return promauto.With(reg).NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels)
}

// GaugeFunc creates a gauge whose value is read from a function. The function is called at each scrape, from any
// goroutine.
func GaugeFunc(reg prometheus.Registerer, name, help string, value func() float64) {
	promauto.With(reg).NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, value)
}

// Histogram creates a histogram. buckets are the upper bounds of its buckets.
func Histogram(reg prometheus.Registerer, name, help string, buckets []float64) prometheus.Histogram {
	return promauto.With(reg).NewHistogram(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets})
}

// HistogramVec creates a histogram with labels. buckets are the upper bounds of its buckets.
func HistogramVec(
	reg prometheus.Registerer, name, help string, buckets []float64, labels ...string,
) *prometheus.HistogramVec {
	opts := prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}
	return promauto.With(reg).NewHistogramVec(opts, labels)
}

// Flag creates a gauge that is 1 while the function set returns true, and otherwise 0. The function is called at each
// scrape, from any goroutine.
func Flag(reg prometheus.Registerer, name, help string, set func() bool) {
	GaugeFunc(reg, name, help, func() float64 {
		if set() {
			return 1
		}
		return 0
	})
}
