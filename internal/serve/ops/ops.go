package ops

import (
	"log/slog"
	"net/http"
	"net/http/pprof"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/quotasvc/quotasvc/internal/kit/metric"
)

// Config configures the endpoints.
type Config struct {
	// Metrics are the metrics of the process. /metrics serves them, and after the start of the service also the
	// service's metrics. Required.
	Metrics *prometheus.Registry

	// Stopping reports whether the service is shutting down. Required.
	Stopping func() bool

	// Level is the level of the log, which /log-level reads and changes. Required.
	Level *slog.LevelVar

	// Pprof enables /debug/pprof/. Profiles cost CPU time, and stack traces may contain names of tenants.
	Pprof bool

	// Log gets a line when the log level is changed. Required.
	Log *slog.Logger

	// LogStalled reports whether lines of the log are not written, because nobody reads them or because writing fails.
	// It must not block. Required.
	LogStalled func() bool
}

// Service is the state of a started service that the endpoints show.
type Service struct {
	Metrics    prometheus.Gatherer
	Conditions []Condition
	Backends   []*Backend

	// Warnings are problems that an operator must solve although the service can serve. Only strict readiness depends
	// on them.
	Warnings []Condition

	// Replicas returns the counts of instances for /readyz. It must not block. It is nil without Redis.
	Replicas func() ReplicaCount

	// ReportLag returns how far the replica for reports is behind, or nil if that is not known. It must not block.
	// The field is nil if there is no such replica.
	ReportLag func() *ReportLag
}

// Endpoints serves the endpoints for operators. The service is not ready before Show is called.
type Endpoints struct {
	cfg     Config
	mux     *http.ServeMux
	service atomic.Pointer[Service] // nil: the service has not started
	waiting atomic.Pointer[string]  // what the start still waits for
	metrics atomic.Pointer[http.Handler]
}

// New returns endpoints of a service that has not started.
func New(cfg Config) *Endpoints {
	e := &Endpoints{cfg: cfg, mux: http.NewServeMux()}
	e.Waiting("its parts")
	metric.Flag(cfg.Metrics, "quotasvc_ready", "Whether the instance is ready, as /readyz says: 1, else 0.",
		func() bool { return e.readiness(false).Ready })
	metric.Flag(cfg.Metrics, "quotasvc_log_stalled", "Whether lines of the log are not written, because nobody reads them or writing fails: 1, else 0.",
		cfg.LogStalled)
	e.mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok\n")) })
	e.mux.HandleFunc("GET /readyz", e.readyz)
	e.mux.HandleFunc("GET /log-level", e.getLevel)
	e.mux.HandleFunc("PUT /log-level", e.putLevel)
	e.serveMetrics(cfg.Metrics)
	e.mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, r *http.Request) { (*e.metrics.Load()).ServeHTTP(w, r) })
	if cfg.Pprof { // not cmdline: a command line may contain a password
		e.mux.HandleFunc("GET /debug/pprof/", pprof.Index)
		e.mux.HandleFunc("GET /debug/pprof/cmdline", http.NotFound)
		e.mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
		e.mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
		e.mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	}
	return e
}

// ServeHTTP implements http.Handler.
func (e *Endpoints) ServeHTTP(w http.ResponseWriter, r *http.Request) { e.mux.ServeHTTP(w, r) }

// Waiting sets the text that says what the start of the service waits for. /readyz shows this text.
func (e *Endpoints) Waiting(reason string) { e.waiting.Store(&reason) }

// Show marks the service as started. From now on the endpoints show its state.
func (e *Endpoints) Show(s Service) {
	e.serveMetrics(prometheus.Gatherers{e.cfg.Metrics, s.Metrics})
	e.service.Store(&s)
}

func (e *Endpoints) serveMetrics(from prometheus.Gatherer) {
	h := promhttp.HandlerFor(from, promhttp.HandlerOpts{EnableOpenMetrics: true}) // only OpenMetrics has exemplars
	e.metrics.Store(&h)
}
