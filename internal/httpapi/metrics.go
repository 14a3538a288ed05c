package httpapi

import (
	"cmp"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/quotasvc/quotasvc/internal/kit/metric"
)

// routeNone is the route label of requests that match no route. The path that a client sent must not become a label,
// because clients may send any number of paths.
const routeNone = "none"

// metrics has the metrics of the requests. Routes, methods and statuses come from the program and not from clients,
// so the number of series is bounded.
type metrics struct {
	requests *prometheus.CounterVec
	duration *prometheus.HistogramVec
	inFlight *metric.InProgress

	// known caches the functions that count requests: outcome -> func(seconds float64, traceID string). Without it,
	// each request would look up its series by their labels, which costs a hash and a lock.
	known sync.Map
}

// outcome has the label values of a request.
type outcome struct {
	route, method string
	status        int
}

func newMetrics(reg prometheus.Registerer) *metrics {
	return &metrics{
		requests: metric.CounterVec(reg, "quotasvc_http_requests_total",
			"Answered requests.", "route", "method", "status"),
		// The buckets reach from 0.25 ms (a check that is answered from memory) to 16 s (longer than every
		// deadline).
		duration: metric.HistogramVec(reg, "quotasvc_http_request_duration_seconds",
			"Time from the end of the request header to the end of the answer.",
			prometheus.ExponentialBuckets(250e-6, 2, 17), "route", "method"),
		inFlight: metric.NewInProgress(reg, "quotasvc_http", "Requests"),
	}
}

func (m *metrics) observe(route, method string, status int, took time.Duration, traceID string) {
	route = cmp.Or(route, routeNone)
	key := outcome{route, methodLabel(method), status}
	count, ok := m.known.Load(key)
	if !ok {
		count, _ = m.known.LoadOrStore(key, m.counter(key))
	}
	count.(func(float64, string))(took.Seconds(), traceID)
}

// counter returns a function that counts a request with this outcome and observes its duration in seconds. If the
// request has a trace, the function adds the trace id as an exemplar.
func (m *metrics) counter(o outcome) func(float64, string) {
	requests, duration := m.requests.WithLabelValues(o.route, o.method, strconv.Itoa(o.status)), m.duration.WithLabelValues(o.route, o.method)
	traced, _ := duration.(prometheus.ExemplarObserver) // true for every histogram
	return func(seconds float64, traceID string) {
		requests.Inc()
		if traceID != "" {
			traced.ObserveWithExemplar(seconds, prometheus.Labels{"trace_id": traceID})
			return
		}
		duration.Observe(seconds)
	}
}

func methodLabel(method string) string {
	switch method {
	case http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodHead, http.MethodOptions:
		return method
	default:
		return "other"
	}
}
