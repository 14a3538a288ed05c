package httpapi

import (
	"context"
	"errors"
	"net/http"
	"net/http/pprof"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// checkTimeout bounds each check of /readyz. Load balancers ask every few seconds and must not wait for a backend that
// hangs.
const checkTimeout = time.Second

// Check is one condition of readiness.
type Check struct {
	Name string
	// Ready returns nil, or why the service is not ready. Operators see the text.
	Ready func(ctx context.Context) error
}

// ReplicaCount is the number of instances that decide limits in the same Redis, this one included.
type ReplicaCount struct {
	Live      int `json:"live"`       // last count from Redis
	DividedBy int `json:"divided_by"` // number among which limits are divided while Redis is down
}

// readiness is the body of /readyz.
type readiness struct {
	Ready  bool              `json:"ready"`
	Checks map[string]string `json:"checks"` // ok, or the reason
	// Replicas is no condition: an instance alone serves as well, and otherwise all instances would become unready together.
	Replicas *ReplicaCount `json:"replicas,omitempty"`
}

// opsHandler serves the operators' endpoints. They reveal no secrets but need no key: listen on an address that only
// operators reach.
func (s *Server) opsHandler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) {
		// Alive means that the process answers. A backend that is down is no reason to restart it.
		_, _ = w.Write([]byte("ok\n"))
	})
	mux.HandleFunc("GET /readyz", s.readyz)
	mux.Handle("GET /metrics", promhttp.HandlerFor(s.cfg.Registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	return mux
}

func (s *Server) readyz(w http.ResponseWriter, r *http.Request) {
	answer, checks := readiness{Ready: true, Checks: map[string]string{}}, s.checks()
	if s.stopping.Load() { // the other checks do not matter any more
		answer.Ready, answer.Checks["shutdown"], checks = false, "shutting down", nil
	}
	for _, check := range checks {
		ctx, cancel := context.WithTimeout(r.Context(), checkTimeout)
		answer.Checks[check.Name] = "ok"
		if err := check.Ready(ctx); err != nil {
			answer.Ready, answer.Checks[check.Name] = false, err.Error()
		}
		cancel()
	}
	if s.cfg.Replicas != nil {
		count := s.cfg.Replicas()
		answer.Replicas = &count
	}
	status := http.StatusOK
	if !answer.Ready {
		status = http.StatusServiceUnavailable
	}
	set(w.Header(), "Content-Type", typeJSON)
	w.WriteHeader(status)
	// The client may be gone already. That is not an error of the service.
	_ = json.MarshalWrite(w, answer, json.Deterministic(true))
}

// checks returns the checks that every service has, and those of the configuration.
func (s *Server) checks() []Check {
	own := []Check{
		{Name: "postgresql", Ready: s.ledger.Ping},
		{Name: "catalogue", Ready: func(context.Context) error {
			if s.catalog.Snapshot().ReadAt.IsZero() {
				return errors.New("not loaded yet")
			}
			return nil
		}},
	}
	return append(own, s.cfg.Checks...)
}
