package ops

import (
	"log/slog"
	"net/http"
	"net/http/pprof"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Config configures the endpoints.
type Config struct {
	// Metrics are the metrics of the process. /metrics serves them, and after the start also the metrics of the
	// service. Required.
	Metrics *prometheus.Registry

	// Stopping reports whether the service is shutting down. Required.
	Stopping func() bool

	// Level is the level of the log, which /log-level reads and changes. Required.
	Level *slog.LevelVar

	// Pprof turns on /debug/pprof/. Profiles cost CPU time, and a stack trace may contain names of tenants.
	Pprof bool

	// Log gets a line when the level is changed. Required.
	Log *slog.Logger
}

// Service is the state of a started service that the endpoints show.
type Service struct {
	Metrics    prometheus.Gatherer
	Conditions []Condition
	Backends   []*Backend

	// Warnings are problems that an operator must fix, though the service can serve. They count only in strict
	// readiness.
	Warnings []Condition

	// Replicas returns the counts of instances for /readyz. nil without Redis. It must not block.
	Replicas func() ReplicaCount

	// ReportLag returns how far the replica for reports is behind, or nil if that is not known. The function is nil
	// if there is no replica. It must not block.
	ReportLag func() *ReportLag
}

// Endpoints serves the operators' endpoints. Until Show the service is not ready.
type Endpoints struct {
	cfg     Config
	mux     *http.ServeMux
	service atomic.Pointer[Service] // nil: the service has not started
	waiting atomic.Pointer[string]  // the reason why the start still waits
	metrics atomic.Pointer[http.Handler]
}

// New returns endpoints of a service that has not started.
func New(cfg Config) *Endpoints {
	e := &Endpoints{cfg: cfg, mux: http.NewServeMux()}
	e.Waiting("its parts")
	cfg.Metrics.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "quotasvc_ready", Help: "Whether the instance is ready, as /readyz says: 1, else 0.",
	}, func() float64 {
		if e.readiness(false).Ready {
			return 1
		}
		return 0
	}))
	e.mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok\n")) })
	e.mux.HandleFunc("GET /readyz", e.readyz)
	e.mux.HandleFunc("GET /log-level", e.getLevel)
	e.mux.HandleFunc("PUT /log-level", e.putLevel)
	e.serveMetrics(cfg.Metrics)
	e.mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, r *http.Request) { (*e.metrics.Load()).ServeHTTP(w, r) })
	if cfg.Pprof { // without cmdline: a command line may contain a password
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

// Waiting sets the reason why the start of the service still waits. /readyz shows it.
func (e *Endpoints) Waiting(reason string) { e.waiting.Store(&reason) }

// Show marks the service as started.
func (e *Endpoints) Show(s Service) {
	e.serveMetrics(prometheus.Gatherers{e.cfg.Metrics, s.Metrics})
	e.service.Store(&s)
}

func (e *Endpoints) serveMetrics(from prometheus.Gatherer) {
	h := promhttp.HandlerFor(from, promhttp.HandlerOpts{EnableOpenMetrics: true}) // only OpenMetrics has exemplars
	e.metrics.Store(&h)
}
