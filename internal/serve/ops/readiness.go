package ops

import (
	"encoding/json/v2"
	"net/http"
)

// Condition is a statement that must be true before the service is ready, or a warning.
type Condition struct {
	Name string
	// Check returns nil if the condition is true, and otherwise the reason, for operators. It must not block.
	Check func() error
}

// ReplicaCount has the number of instances that decide limits in the same Redis. The number includes this instance.
type ReplicaCount struct {
	Live      int `json:"live"`       // the latest count from Redis
	DividedBy int `json:"divided_by"` // number of instances among which limits are divided while Redis is down
}

// ReportLag says how far the replica for reports is behind.
type ReportLag struct {
	Seconds float64 `json:"seconds"`
	Bytes   int64   `json:"bytes"` // bytes of WAL that the replica has not replayed; -1: not known
}

// readiness is the body of /readyz.
type readiness struct {
	Ready    bool              `json:"ready"`
	Checks   map[string]string `json:"checks"`             // ok, or the reason
	Backends map[string]string `json:"backends,omitempty"` // ok, or the error; counts only for strict readiness
	Warnings map[string]string `json:"warnings,omitempty"` // problems to solve; count only for strict readiness
	// Log is ok or stalled. It does not affect readiness, because requests do not wait for the log.
	Log string `json:"log"`
	// Replicas does not affect readiness, because one instance alone can serve. If it did, all instances would become
	// unready together.
	Replicas *ReplicaCount `json:"replicas,omitempty"`
	// ReportLag does not affect readiness: a report from a replica that is behind is still useful.
	ReportLag *ReportLag `json:"report_lag,omitempty"`
}

// fail records the reason why the service is not ready, under a name.
func (r *readiness) fail(name, reason string) { r.Ready, r.Checks[name] = false, reason }

func (e *Endpoints) readyz(w http.ResponseWriter, r *http.Request) {
	answer := e.readiness(r.URL.Query().Get("strict") == "1")
	status := http.StatusOK
	if !answer.Ready {
		status = http.StatusServiceUnavailable
	}
	send(w, status, answer)
}

// readiness returns the current state. For strict readiness all backends must answer and there must be no warnings.
func (e *Endpoints) readiness(strict bool) readiness {
	answer, s := readiness{Ready: true, Checks: map[string]string{}, Log: "ok"}, e.service.Load()
	if e.cfg.LogStalled() {
		answer.Log = "stalled"
	}
	if e.cfg.Stopping() { // the other checks do not matter any more
		answer.fail("shutdown", "shutting down")
		return answer
	}
	if s == nil {
		answer.fail("start", "waiting for "+*e.waiting.Load())
		return answer
	}
	for _, c := range s.Conditions {
		answer.Checks[c.Name] = "ok"
		if err := c.Check(); err != nil {
			answer.fail(c.Name, err.Error())
		}
	}
	for _, b := range s.Backends {
		if answer.Backends == nil {
			answer.Backends = map[string]string{}
		}
		answer.Backends[b.name] = "ok"
		if err := b.state(); err != nil {
			answer.Backends[b.name] = err.Error()
			answer.Ready = answer.Ready && !strict
		}
	}
	for _, w := range s.Warnings {
		if err := w.Check(); err != nil {
			if answer.Warnings == nil {
				answer.Warnings = map[string]string{}
			}
			answer.Warnings[w.Name] = err.Error()
			answer.Ready = answer.Ready && !strict
		}
	}
	if s.Replicas != nil {
		count := s.Replicas()
		answer.Replicas = &count
	}
	if s.ReportLag != nil {
		answer.ReportLag = s.ReportLag()
	}
	return answer
}

// Fault is a condition that is not true, a backend that is down, or a warning, with the reason.
type Fault struct{ Part, Reason string }

// Faults returns the conditions that are not true, the backends that are down, and the warnings. It does not block.
func (s *Service) Faults() []Fault {
	var out []Fault
	add := func(name string, err error) {
		if err != nil {
			out = append(out, Fault{name, err.Error()})
		}
	}
	for _, c := range s.Conditions {
		add(c.Name, c.Check())
	}
	for _, b := range s.Backends {
		add(b.name, b.state())
	}
	for _, w := range s.Warnings {
		add(w.Name, w.Check())
	}
	return out
}

// send answers with value as JSON.
func send(w http.ResponseWriter, status int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	// The client may have closed the connection. That is not an error of the service.
	_ = json.MarshalWrite(w, value, json.Deterministic(true))
}
