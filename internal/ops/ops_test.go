package ops

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

// ask sends a request to the endpoints and returns the body.
func ask(t *testing.T, cfg Config, method, path, body string, status int) string {
	t.Helper()
	if cfg.Metrics == nil {
		cfg.Metrics = prometheus.NewRegistry()
	}
	if cfg.Stopping == nil {
		cfg.Stopping = func() bool { return false }
	}
	w := httptest.NewRecorder()
	Handler(cfg).ServeHTTP(w, httptest.NewRequest(method, path, strings.NewReader(body)))
	if w.Code != status {
		t.Fatalf("%s %s: %d, want %d: %s", method, path, w.Code, status, w.Body)
	}
	return w.Body.String()
}

// The counts are information; they do not change readiness.
func TestReadyz_CountsInstances(t *testing.T) {
	t.Parallel()
	for _, r := range []ReplicaCount{{Live: 2, DividedBy: 3}, {Live: 1, DividedBy: 8}} {
		want := fmt.Sprintf(`{"ready":true,"checks":{},"replicas":{"live":%d,"divided_by":%d}}`, r.Live, r.DividedBy)
		if got := ask(t, Config{Replicas: func() ReplicaCount { return r }}, "GET", "/readyz", "", 200); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

func TestReadyz_NamesWhatIsMissing(t *testing.T) {
	t.Parallel()
	var behind, stopping atomic.Bool
	cfg := Config{Stopping: stopping.Load, Checks: []Check{{Name: "catalogue", Ready: func(context.Context) error {
		if behind.Load() {
			return errors.New("not loaded yet")
		}
		return nil
	}}}}
	if got, want := ask(t, cfg, "GET", "/readyz", "", http.StatusOK), `{"ready":true,"checks":{"catalogue":"ok"}}`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	behind.Store(true)
	if got, want := ask(t, cfg, "GET", "/readyz", "", 503), `{"ready":false,"checks":{"catalogue":"not loaded yet"}}`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	stopping.Store(true)
	if got, want := ask(t, cfg, "GET", "/readyz", "", 503), `{"ready":false,"checks":{"shutdown":"shutting down"}}`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	ask(t, cfg, "GET", "/livez", "", http.StatusOK)
}
