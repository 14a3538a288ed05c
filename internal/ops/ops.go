package ops

import (
	"net/http"
	"net/http/pprof"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Config configures the endpoints.
type Config struct {
	// Metrics is what /metrics serves. Required.
	Metrics prometheus.Gatherer

	// Checks are the checks of /readyz.
	Checks []Check

	// Replicas returns the counts of instances for /readyz. nil without Redis. It must not block.
	Replicas func() ReplicaCount

	// Stopping reports whether the service is shutting down. Required.
	Stopping func() bool
}

type endpoints struct{ cfg Config }

// Handler returns the handler of the endpoints.
func Handler(cfg Config) http.Handler {
	e := &endpoints{cfg: cfg}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok\n")) })
	mux.HandleFunc("GET /readyz", e.readyz)
	mux.Handle("GET /metrics", promhttp.HandlerFor(cfg.Metrics, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	return mux
}
