package ops

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// newEndpoints returns endpoints of a service that has not started, and its log.
func newEndpoints(change ...func(*Config)) (*Endpoints, *bytes.Buffer) {
	log, level := &bytes.Buffer{}, &slog.LevelVar{}
	cfg := Config{
		Metrics: prometheus.NewRegistry(), Stopping: func() bool { return false }, Level: level,
		Log: slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: level})), LogStalled: func() bool { return false },
	}
	for _, f := range change {
		f(&cfg)
	}
	return New(cfg), log
}

// ask sends a request to the endpoints, checks the status, and returns the body.
func ask(t *testing.T, e *Endpoints, method, path, body string, status int) string {
	t.Helper()
	w := httptest.NewRecorder()
	e.ServeHTTP(w, httptest.NewRequest(method, path, strings.NewReader(body)))
	require.True(t, w.Code == status, "%s %s: %d, want %d: %s", method, path, w.Code, status, w.Body)
	return w.Body.String()
}

// The counts of instances do not change readiness.
func TestReadyz_CountsInstances(t *testing.T) {
	t.Parallel()
	for _, r := range []ReplicaCount{{Live: 2, DividedBy: 3}, {Live: 1, DividedBy: 8}} {
		e, _ := newEndpoints()
		e.Show(Service{Metrics: prometheus.NewRegistry(), Replicas: func() ReplicaCount { return r }})
		want := fmt.Sprintf(`{"ready":true,"checks":{},"log":"ok","replicas":{"live":%d,"divided_by":%d}}`, r.Live, r.DividedBy)
		assert.Equal(t, want, ask(t, e, "GET", "/readyz", "", 200))
	}
}

// A warning makes strict readiness fail, but not readiness.
func TestReadyz_Warning_ShownAndStrictFails(t *testing.T) {
	t.Parallel()
	var wrong atomic.Bool
	e, _ := newEndpoints()
	e.Show(Service{Metrics: prometheus.NewRegistry(), Warnings: []Condition{{Name: "redis_eviction", Check: func() error {
		if wrong.Load() {
			return errors.New("it may evict keys")
		}
		return nil
	}}}})
	assert.Equal(t, `{"ready":true,"checks":{},"log":"ok"}`, ask(t, e, "GET", "/readyz?strict=1", "", 200))
	wrong.Store(true)
	assert.Equal(t, `{"ready":true,"checks":{},"warnings":{"redis_eviction":"it may evict keys"},"log":"ok"}`, ask(t, e, "GET", "/readyz", "", 200))
	ask(t, e, "GET", "/readyz?strict=1", "", 503)
}

// A log that nobody reads does not change readiness: requests do not wait for it.
func TestReadyz_LogStalled_ShownAndReady(t *testing.T) {
	t.Parallel()
	var stalled atomic.Bool
	e, _ := newEndpoints(func(cfg *Config) { cfg.LogStalled = stalled.Load })
	stalled.Store(true)
	assert.Equal(t, `{"ready":false,"checks":{"start":"waiting for its parts"},"log":"stalled"}`, ask(t, e, "GET", "/readyz", "", 503))
	e.Show(Service{Metrics: prometheus.NewRegistry()})
	assert.Equal(t, `{"ready":true,"checks":{},"log":"stalled"}`, ask(t, e, "GET", "/readyz?strict=1", "", 200))
	assert.Contains(t, ask(t, e, "GET", "/metrics", "", 200), "quotasvc_log_stalled 1\n")
	stalled.Store(false)
	assert.Contains(t, ask(t, e, "GET", "/metrics", "", 200), "quotasvc_log_stalled 0\n")
}

func TestReadyz_NamesWhatIsMissing(t *testing.T) {
	t.Parallel()
	var behind, stopping atomic.Bool
	e, _ := newEndpoints(func(cfg *Config) { cfg.Stopping = stopping.Load })
	expect := func(status int, want string) {
		t.Helper()
		assert.Equal(t, want, ask(t, e, "GET", "/readyz", "", status))
		ask(t, e, "GET", "/livez", "", http.StatusOK)
		metric := map[int]string{200: "quotasvc_ready 1\n", 503: "quotasvc_ready 0\n"}[status]
		assert.Contains(t, ask(t, e, "GET", "/metrics", "", 200), metric)
	}
	e.Waiting("PostgreSQL: it sleeps")
	expect(503, `{"ready":false,"checks":{"start":"waiting for PostgreSQL: it sleeps"},"log":"ok"}`)
	e.Show(Service{Metrics: prometheus.NewRegistry(), Conditions: []Condition{{Name: "catalogue", Check: func() error {
		if behind.Load() {
			return errors.New("not loaded yet")
		}
		return nil
	}}}})
	expect(200, `{"ready":true,"checks":{"catalogue":"ok"},"log":"ok"}`)
	behind.Store(true)
	expect(503, `{"ready":false,"checks":{"catalogue":"not loaded yet"},"log":"ok"}`)
	stopping.Store(true)
	expect(503, `{"ready":false,"checks":{"shutdown":"shutting down"},"log":"ok"}`)
}

// For any number of requests to /readyz, the backend gets one check at a time, and no request waits for the check.
func TestBackend_Hangs_AskedOnceAtATime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var hangs atomic.Bool
		var asked, now, most atomic.Int32
		metrics := prometheus.NewRegistry()
		b := NewBackend(t.Context(), "postgresql", func(ctx context.Context) error {
			asked.Add(1)
			most.Store(max(most.Load(), now.Add(1)))
			defer now.Add(-1)
			if hangs.Load() {
				<-ctx.Done()
				return errors.New("no answer")
			}
			return nil
		}, metrics)
		defer func() { _ = b.Stop(t.Context()) }()
		e, _ := newEndpoints()
		e.Show(Service{Metrics: metrics, Backends: []*Backend{b}})
		expect := func(status int, path, want string) {
			t.Helper()
			for range 100 {
				require.Contains(t, ask(t, e, "GET", path, "", status), want, "%s", path)
			}
		}
		expect(200, "/readyz?strict=1", `"backends":{"postgresql":"ok"}`)
		expect(200, "/metrics", "quotasvc_postgresql_up 1\n")
		hangs.Store(true)
		time.Sleep(3 * time.Second)
		began := time.Now()
		expect(200, "/readyz", `{"ready":true,"checks":{},"backends":{"postgresql":"no answer"},"log":"ok"}`)
		expect(503, "/readyz?strict=1", `"ready":false`)
		expect(200, "/metrics", "quotasvc_postgresql_up 0\n")
		assert.Zero(t, time.Since(began), "/readyz waited")
		hangs.Store(false)
		time.Sleep(3 * time.Second)
		expect(200, "/readyz?strict=1", `"ready":true`)
		assert.True(t, most.Load() == 1 && asked.Load() <= 10, "asked %d times, %d at once", asked.Load(), most.Load())
	})
}

func TestLogLevel_PutAndGet(t *testing.T) {
	t.Parallel()
	var level *slog.LevelVar
	e, log := newEndpoints(func(cfg *Config) { level = cfg.Level })
	assert.Equal(t, `{"level":"info"}`, ask(t, e, "GET", "/log-level", "", 200))
	for _, name := range []string{"debug", "warn", "error", "info"} {
		got := ask(t, e, "PUT", "/log-level", `{"level":"`+name+`"}`, 200)
		assert.True(t, got == `{"level":"`+name+`"}` && strings.EqualFold(level.Level().String(), name), "%s: %s, %s", name, got, level.Level())
	}
	assert.Equal(t, 4, strings.Count(log.String(), "log level changed"), "%s", log)
	for _, body := range []string{"", "{}", `{"level":"loud"}`, `{"level":"INFO"}`, `{"level":"info","more":1}`, `"info"`, strings.Repeat(" ", 2*levelBodyMax) + `{"level":"info"}`} {
		ask(t, e, "PUT", "/log-level", body, 400)
	}
}

func TestPprof_OffUnlessAsked_NeverCommandLine(t *testing.T) {
	t.Parallel()
	off, _ := newEndpoints()
	on, _ := newEndpoints(func(cfg *Config) { cfg.Pprof = true })
	for _, path := range []string{"/debug/pprof/", "/debug/pprof/heap", "/debug/pprof/cmdline", "/debug/pprof/profile", "/debug/pprof/symbol"} {
		ask(t, off, "GET", path, "", 404)
	}
	ask(t, on, "GET", "/debug/pprof/", "", 200)
	ask(t, on, "GET", "/debug/pprof/heap", "", 200)
	ask(t, on, "GET", "/debug/pprof/cmdline", "", 404)
}
