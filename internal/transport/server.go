package transport

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

// Time limits of a connection. A slow or silent client must not hold one for ever.
const (
	headerTimeout = 5 * time.Second  // the header of a request is one packet
	readTimeout   = 15 * time.Second // 1 MiB over a slow line
	writeTimeout  = 15 * time.Second // added to readTimeout and the time limit of the request
	// idleTimeout is longer than the 60 s after which common load balancers close idle connections. The side that closes
	// first must not be the one that receives a request at that moment.
	idleTimeout = 90 * time.Second
	// headerBytesMax is far more than a key, a token and a trace header need.
	headerBytesMax = 32 << 10
)

// Config configures a Server.
type Config struct {
	// API and Ops are the handlers of the two listeners. Required. SetAPI replaces API.
	API, Ops http.Handler

	// RequestTimeout is the longest that a handler of the API takes. Answers are cut off some time after it.
	RequestTimeout time.Duration

	// DrainDelay is how long a server that shuts down goes on accepting connections, so that load balancers notice. Zero: not at all.
	DrainDelay time.Duration

	// Log gets a line for a connection that failed. Required.
	Log *slog.Logger
}

// Server serves the API on one listener and the operators' endpoints on another.
type Server struct {
	cfg      Config
	api      *http.Server
	ops      *http.Server
	serving  errgroup.Group
	stopping atomic.Bool
	handler  atomic.Pointer[http.Handler] // of the API
}

// New returns a server that does not listen yet.
func New(cfg Config) *Server {
	s := &Server{cfg: cfg}
	s.SetAPI(cfg.API)
	s.api = newServer(&cfg, http.HandlerFunc(s.serveAPI))
	s.api.WriteTimeout = readTimeout + cfg.RequestTimeout + writeTimeout
	s.ops = newServer(&cfg, cfg.Ops) // without WriteTimeout: a profile lasts as long as its reader asked for
	return s
}

func newServer(cfg *Config, h http.Handler) *http.Server {
	return &http.Server{
		Handler:           h,
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       readTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    headerBytesMax,
		ErrorLog:          slog.NewLogLogger(cfg.Log.Handler(), slog.LevelWarn),
	}
}

// SetAPI replaces the handler of the API: the service has started. Requests in progress stay with the one before.
func (s *Server) SetAPI(h http.Handler) { s.handler.Store(&h) }

func (s *Server) serveAPI(w http.ResponseWriter, r *http.Request) {
	(*s.handler.Load()).ServeHTTP(w, r)
}

// Start serves on both listeners until Shutdown. It returns at once.
func (s *Server) Start(api, ops net.Listener) {
	s.serving.Go(func() error { return s.serveOn(s.api, api, "serve the API") })
	s.serving.Go(func() error { return s.serveOn(s.ops, ops, "serve operations") })
}

func (s *Server) serveOn(server *http.Server, l net.Listener, what string) error {
	err := server.Serve(l)
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	// The service is useless without one of its listeners: the other one ends as well, and Wait returns the error.
	return errors.Join(fmt.Errorf("%s: %w", what, err), s.api.Close(), s.ops.Close())
}

// Wait returns nil after Shutdown, or the error of a listener as soon as it fails.
func (s *Server) Wait() error { return s.serving.Wait() }

// Stopping reports whether Shutdown was called.
func (s *Server) Stopping() bool { return s.stopping.Load() }

// Shutdown stops serving without losing a request. For DrainDelay requests are still answered, each with Connection: close. Then the listener
// closes, and requests in progress finish. If ctx ends first, the rest is cut off and Shutdown returns ctx's error. The operators' endpoints stop
// last. A second call returns nil at once.
//
// Stop what handlers use after Shutdown: requests need it to the end.
func (s *Server) Shutdown(ctx context.Context) error {
	if s.stopping.Swap(true) {
		return nil
	}
	s.api.SetKeepAlivesEnabled(false)
	delay := time.NewTimer(s.cfg.DrainDelay)
	defer delay.Stop()
	select {
	case <-delay.C:
	case <-ctx.Done():
	}
	err := s.api.Shutdown(ctx)
	if err != nil {
		err = errors.Join(fmt.Errorf("finish requests: %w", err), s.api.Close())
	}
	if closed := s.ops.Shutdown(ctx); closed != nil {
		err = errors.Join(err, s.ops.Close())
	}
	return errors.Join(err, s.serving.Wait())
}

// Close closes both listeners and all connections at once.
func (s *Server) Close() error {
	s.stopping.Store(true)
	return errors.Join(s.api.Close(), s.ops.Close(), s.serving.Wait())
}
