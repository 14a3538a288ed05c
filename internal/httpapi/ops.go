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

// checkTimeout bounds each question of /readyz: a load balancer asks every few seconds and must not wait for a backend that
// hangs.
const checkTimeout = time.Second

// Check is one reason why the service may not be ready.
type Check struct {
	Name string
	// Ready returns nil, or why not. The text is shown to operators.
	Ready func(ctx context.Context) error
}

// ReplicaCount is how many instances decide limits in the same Redis, this one included.
type ReplicaCount struct {
	Live      int `json:"live"`       // heard of there, or when it was there last
	DividedBy int `json:"divided_by"` // to share limits among while it is away
}

// readiness is the answer of /readyz.
type readiness struct {
	Ready  bool              `json:"ready"`
	Checks map[string]string `json:"checks"` // "ok", or why not
	// Replicas is information and no condition: an instance serves as well alone, and all would turn red together.
	Replicas *ReplicaCount `json:"replicas,omitempty"`
}

// opsHandler serves the operators' endpoints. They tell no secrets, but they have no authentication: the listener belongs on
// an address that only operators reach.
func (s *Server) opsHandler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) {
		// Alive means that the process answers. A backend that is away is no reason to restart it.
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
	if s.stopping.Load() { // nothing else matters any more
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
	// A client that has gone is no error of ours.
	_ = json.MarshalWrite(w, answer, json.Deterministic(true))
}

// checks are what every service needs, and what the configuration adds.
func (s *Server) checks() []Check {
	own := []Check{
		{Name: "postgresql", Ready: s.ledger.Ping},
		{Name: "catalogue", Ready: func(context.Context) error {
			if s.catalog.Snapshot().ReadAt.IsZero() {
				return errors.New("not read yet")
			}
			return nil
		}},
	}
	return append(own, s.cfg.Checks...)
}
