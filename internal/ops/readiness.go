package ops

import (
	"context"
	"net/http"
	"time"

	"github.com/go-json-experiment/json"
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

func (e *endpoints) readyz(w http.ResponseWriter, r *http.Request) {
	answer, checks := readiness{Ready: true, Checks: map[string]string{}}, e.cfg.Checks
	if e.cfg.Stopping() { // the other checks do not matter any more
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
	if e.cfg.Replicas != nil {
		count := e.cfg.Replicas()
		answer.Replicas = &count
	}
	status := http.StatusOK
	if !answer.Ready {
		status = http.StatusServiceUnavailable
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	// The client may be gone already. That is not an error of the service.
	_ = json.MarshalWrite(w, answer, json.Deterministic(true))
}
