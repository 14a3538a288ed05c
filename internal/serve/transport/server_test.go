package transport

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// running is a server that listens on free ports, with a client.
type running struct {
	t      testing.TB
	server *Server
	url    string // URL of the API
	ops    string
	client *http.Client
}

func listen(t testing.TB) net.Listener {
	t.Helper()
	return testenv.Must(t).Get((&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0"))
}

// start starts a server whose API is h.
func start(t testing.TB, h http.HandlerFunc, change ...func(*Config)) *running {
	t.Helper()
	api, ops := listen(t), listen(t)
	return startOn(t, h, api, ops, "http://"+api.Addr().String(), &http.Transport{}, change)
}

// startInBubble is like start within synctest: connections are pipes, and no time passes while any goroutine can run.
func startInBubble(t testing.TB, h http.HandlerFunc, change ...func(*Config)) (*running, *pipes) {
	t.Helper()
	api, ops := newPipes(), newPipes()
	return startOn(t, h, api, ops, "http://api", &http.Transport{
		DialContext: func(_ context.Context, _, address string) (net.Conn, error) {
			if address == "ops:80" {
				return ops.dial()
			}
			return api.dial()
		},
	}, change), api
}

func startOn(
	t testing.TB, h http.HandlerFunc, api, ops net.Listener, url string, transport *http.Transport, change []func(*Config),
) *running {
	t.Helper()
	cfg := Config{
		RequestTimeout: testenv.Patience, ConnectionsMax: 100, Log: slog.New(slog.DiscardHandler), Metrics: prometheus.NewRegistry(),
		Ops: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ops") }),
	}
	for _, f := range change {
		f(&cfg)
	}
	s := &running{
		t: t, server: New(cfg), url: url, ops: "http://" + ops.Addr().String(),
		client: &http.Client{Timeout: testenv.Patience, Transport: transport},
	}
	if cfg.TLS != nil {
		s.url = strings.Replace(s.url, "http:", "https:", 1)
	}
	s.server.ServeOps(ops)
	s.server.ServeAPI(h, api)
	t.Cleanup(func() {
		s.client.CloseIdleConnections()
		ctx, cancel := context.WithTimeout(context.Background(), testenv.Patience)
		defer cancel()
		assert.NoError(t, s.server.Shutdown(ctx))
	})
	return s
}

// reply is an answer. Its body has already been read.
type reply struct {
	StatusCode int
	Header     http.Header
	Close      bool
}

func (s *running) get(url string) reply {
	s.t.Helper()
	response, err := s.client.Get(url)
	if err != nil {
		s.t.Error(err)
		return reply{}
	}
	_, _ = io.Copy(io.Discard, response.Body)
	require.NoError(s.t, response.Body.Close())
	return reply{response.StatusCode, response.Header, response.Close}
}

// pipes is a listener in memory, for synctest.
type pipes struct {
	waiting chan net.Conn
	closed  chan struct{}
	close   func()
}

func newPipes() *pipes {
	p := &pipes{waiting: make(chan net.Conn), closed: make(chan struct{})}
	p.close = sync.OnceFunc(func() { close(p.closed) })
	return p
}

// Accept implements net.Listener.
func (p *pipes) Accept() (net.Conn, error) {
	select {
	case conn := <-p.waiting:
		return conn, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (p *pipes) Close() error { p.close(); return nil }

// Addr implements net.Listener.
func (p *pipes) Addr() net.Addr { return address("ops") }

type address string

func (a address) Network() string { return "pipe" }
func (a address) String() string  { return string(a) }

func (p *pipes) dial() (net.Conn, error) {
	ours, theirs := net.Pipe()
	select {
	case p.waiting <- theirs:
		return ours, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

// open is like dial, and closes the connection at the end of the test.
func (p *pipes) open(t testing.TB) net.Conn {
	t.Helper()
	return testenv.CloseAtEnd(t, testenv.Must(t).Get(p.dial()))
}

func TestShutdown_FinishesAcceptedRequests(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		entered, leave := make(chan struct{}), make(chan struct{})
		s, api := startInBubble(t, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/slow" {
				entered <- struct{}{}
				<-leave
			}
			w.WriteHeader(http.StatusAccepted)
		}, func(cfg *Config) { cfg.DrainDelay = 300 * time.Millisecond })
		slow := make(chan int, 1)
		go func() { slow <- s.get(s.url + "/slow").StatusCode }()
		<-entered
		done := make(chan error, 1)
		go func() { done <- s.server.Shutdown(context.Background()) }()
		synctest.Wait()
		// Requests that the load balancer still sends are answered, with Connection: close.
		if response := s.get(s.url + "/"); response.StatusCode != http.StatusAccepted || !response.Close {
			t.Errorf("%d, close %v", response.StatusCode, response.Close)
		}
		time.Sleep(time.Second) // DrainDelay and drainGap have passed
		if conn, err := api.dial(); err == nil {
			_ = conn.Close()
			t.Error("the listener is open")
		}
		s.get(s.ops) // the endpoints for operators stop last
		select {
		case err := <-done:
			t.Fatalf("shut down before the request was answered: %v", err)
		default:
		}
		close(leave)
		assert.Equal(t, http.StatusAccepted, <-slow, "status")
		err := <-done
		assert.NoError(t, err)
		assert.NoError(t, s.server.Wait())
	})
}

func TestShutdown_CutsOffAtDeadline(t *testing.T) {
	t.Parallel()
	entered, leave := make(chan struct{}), make(chan struct{})
	s := start(t, func(http.ResponseWriter, *http.Request) {
		close(entered)
		<-leave
	})
	defer close(leave)
	cut := make(chan error, 1)
	go func() {
		response, err := s.client.Post(s.url, "text/plain", nil)
		if err == nil {
			err = response.Body.Close()
		}
		cut <- err
	}()
	<-entered
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	assert.ErrorIs(t, s.server.Shutdown(ctx), context.DeadlineExceeded)
	err := <-cut
	assert.Error(t, err, "the request was answered")
}

func TestServer_ListenerFails_Stops(t *testing.T) {
	t.Parallel()
	api := listen(t)
	require.NoError(t, api.Close())
	s := New(Config{Ops: http.NotFoundHandler(), ConnectionsMax: 1, Log: slog.New(slog.DiscardHandler), Metrics: prometheus.NewRegistry()})
	s.ServeOps(listen(t))
	s.ServeAPI(http.NotFoundHandler(), api)
	err := s.Wait()
	assert.True(t, err != nil && strings.Contains(err.Error(), "serve the API"), err)
}

func TestServer_LargeHeader_431(t *testing.T) {
	t.Parallel()
	s := start(t, func(http.ResponseWriter, *http.Request) {})
	r := testenv.Must(t).Get(http.NewRequestWithContext(t.Context(), http.MethodGet, s.url, nil))
	r.Header.Set("X-Large", strings.Repeat("x", 2*headerBytesMax))
	response, err := s.client.Do(r)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	assert.Equal(t, http.StatusRequestHeaderFieldsTooLarge, response.StatusCode, "status")
}
