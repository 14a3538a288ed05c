package transport

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"github.com/quotasvc/quotasvc/internal/kit/backoff"
)

// Time limits of a connection. A slow or silent client must not keep a connection for ever.
const (
	headerTimeout = 5 * time.Second  // the header of a request is one packet
	readTimeout   = 15 * time.Second // 1 MiB over a slow line
	writeTimeout  = 15 * time.Second // added to readTimeout and the time limit of the request
	// idleTimeout is longer than the 60 s after which common load balancers close idle connections. The load balancer
	// must close first: a server that closes may receive a request at that moment.
	idleTimeout = 90 * time.Second
	// headerBytesMax is far more than a key, a token and a trace header need.
	headerBytesMax = 32 << 10
)

const (
	// opsConnectionsMax bounds the connections of operators: probes, scrapes and profiles. They are part of the
	// reserve of file descriptors.
	opsConnectionsMax = 64

	// bodyGrace is how long a connection that is about to be closed still accepts the rest of a request's body. A
	// client that sends the whole body before it reads gets its answer. A client that sends slowly cannot keep the
	// connection.
	bodyGrace = 500 * time.Millisecond

	// drainGap is the time between the end of listening and http.Server.Shutdown. After the start of Shutdown,
	// net/http drops a request that it has just read on a new connection, without an answer. Load balancers send a
	// request at once after they open a connection.
	drainGap = 500 * time.Millisecond
)

// Config configures a Server.
type Config struct {
	// Ops is the handler of the operators' endpoints. Required.
	Ops http.Handler

	// RequestTimeout is the longest time that a handler of the API may take. Answers are cut off some time after it.
	RequestTimeout time.Duration

	// DrainDelay is how long a server that shuts down still accepts connections, so that load balancers notice the
	// shutdown. Zero: it stops at once.
	DrainDelay time.Duration

	// ConnectionsMax bounds the connections of clients. A further connection is closed before it is served. Required.
	ConnectionsMax int

	// TLS has the certificate of the API. nil: plain HTTP.
	TLS *Certificates

	// Log gets a line for each connection that failed. Required.
	Log *slog.Logger

	// Metrics gets the metrics of connections. Required.
	Metrics prometheus.Registerer
}

// Part serves a further listener in its own protocol. It is drained and stopped together with the API.
type Part struct {
	Name           string // of the listener, in metrics and errors
	Protocol       string // for ALPN, if there is TLS
	ConnectionsMax int
	Serve          func(net.Listener) error    // returns when the listener or the part is closed
	Drain          func()                      // informs load balancers that the server stops soon
	Stop           func(context.Context) error // finishes requests in progress, and cuts them off when its context ends
}

// besideAPI is a part with its listener.
type besideAPI struct {
	*Part

	listener net.Listener
}

// Server serves the API on one listener, the operators' endpoints on a second listener, and optional parts on further
// listeners.
type Server struct {
	cfg      Config
	api      *http.Server
	ops      *http.Server
	metrics  *metrics
	listener net.Listener                // of the API
	parts    atomic.Pointer[[]besideAPI] // nil: none
	serving  errgroup.Group
	stopping atomic.Bool
}

// New returns a server that does not listen yet. It panics if the registry already has the metrics of a server.
func New(cfg Config) *Server {
	s := &Server{cfg: cfg, metrics: newMetrics(cfg.Metrics)}
	if cfg.TLS != nil {
		cfg.Metrics.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "quotasvc_tls_certificate_expiry_timestamp_seconds", Help: "When the API's current certificate expires, in seconds since 1970.",
		}, func() float64 { return float64(cfg.TLS.expires().Unix()) }))
	}
	s.api = newServer(&cfg)
	s.api.WriteTimeout = readTimeout + cfg.RequestTimeout + writeTimeout
	s.ops = newServer(&cfg) // without WriteTimeout: a profile takes as long as its request demands
	s.ops.Handler = cfg.Ops
	return s
}

func newServer(cfg *Config) *http.Server {
	server := &http.Server{
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       readTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    headerBytesMax,
		ErrorLog:          slog.NewLogLogger(cfg.Log.Handler(), slog.LevelWarn),
		Protocols:         new(http.Protocols),
	}
	// HTTP/1.1 only, which load balancers use for their servers. The bound on connections, closing after an answer
	// and draining assume that a connection has one request at a time.
	server.Protocols.SetHTTP1(true)
	return server
}

// ServeOps serves the operators' endpoints on l until Shutdown. It returns at once.
func (s *Server) ServeOps(l net.Listener) {
	capped := newCapped(l, opsConnectionsMax, s.metrics, "ops")
	s.ops.ConnState = capped.observe
	s.serving.Go(func() error { return s.served(s.ops.Serve(capped), "serve operations") })
}

// ServeAPI serves h on l until Shutdown. It returns at once.
func (s *Server) ServeAPI(h http.Handler, l net.Listener) {
	capped := newCapped(l, s.cfg.ConnectionsMax, s.metrics, "api")
	s.api.Handler, s.api.ConnState = s.guarded(h), capped.observe
	var accepting net.Listener = capped
	if s.cfg.TLS != nil {
		accepting = tls.NewListener(capped, s.cfg.TLS.config("http/1.1"))
	}
	s.listener = accepting
	s.serving.Go(func() error { return s.served(s.api.Serve(accepting), "serve the API") })
}

// ServePart serves p on l until Shutdown, with the API's certificate if there is one. It returns at once. Parts are added one after the other.
func (s *Server) ServePart(p *Part, l net.Listener) {
	var accepting net.Listener = tracked{newCapped(l, p.ConnectionsMax, s.metrics, p.Name)}
	if s.cfg.TLS != nil {
		accepting = tls.NewListener(accepting, s.cfg.TLS.config(p.Protocol))
	}
	all := append(slices.Clone(s.beside()), besideAPI{p, accepting})
	s.parts.Store(&all)
	s.serving.Go(func() error { return s.served(p.Serve(accepting), "serve "+p.Name) })
}

// beside returns the parts.
func (s *Server) beside() []besideAPI {
	if all := s.parts.Load(); all != nil {
		return *all
	}
	return nil
}

// ServePages serves h on l until Shutdown, for browsers, as a part with this name.
func (s *Server) ServePages(name string, h http.Handler, l net.Listener, most int) {
	server := newServer(&s.cfg)
	server.Handler, server.WriteTimeout = s.guarded(h), s.api.WriteTimeout
	s.ServePart(&Part{
		Name: name, Protocol: "http/1.1", ConnectionsMax: most, Serve: server.Serve, Drain: func() {},
		Stop: func(ctx context.Context) error {
			if err := server.Shutdown(ctx); err != nil {
				return errors.Join(fmt.Errorf("finish pages: %w", err), server.Close())
			}
			return nil
		},
	}, l)
}

// guarded adds the headers and checks to h that all answers of the API need.
//
// A request with Transfer-Encoding closes its connection. If it also has a Content-Length, RFC 9112 6.3 requires
// this: the bytes that follow may be a request that a proxy in front has not seen. net/http removes this
// Content-Length, so it is not known whether there was one; therefore every request with Transfer-Encoding closes its
// connection. Clients send JSON with a Content-Length, so this costs them nothing.
func (s *Server) guarded(h http.Handler) http.Handler {
	noSniff, noStore, closing := []string{"nosniff"}, []string{"no-store"}, []string{"close"} // shared by all answers: no allocation
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header["X-Content-Type-Options"], header["Cache-Control"] = noSniff, noStore
		if len(r.TransferEncoding) > 0 || s.stopping.Load() {
			header["Connection"] = closing
		}
		h.ServeHTTP(w, r)
		if r.ContentLength != 0 && header.Get("Connection") == "close" {
			// It is not known here whether more bytes follow, and the connection ends in any case. Without this
			// deadline net/http would read for up to readTimeout.
			_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodyGrace))
		}
	})
}

// served returns the error of a listener that ended by itself.
func (s *Server) served(err error, what string) error {
	if errors.Is(err, http.ErrServerClosed) || s.stopping.Load() {
		return nil
	}
	// The service needs all of its listeners: the others end, too, and Wait returns the error.
	return errors.Join(fmt.Errorf("%s: %w", what, err), s.cut())
}

// cut closes all listeners and connections.
func (s *Server) cut() error {
	err := errors.Join(s.api.Close(), s.ops.Close())
	for _, p := range s.beside() {
		now, cancel := context.WithCancel(context.Background())
		cancel()
		_ = p.Stop(now) // its error only says that it was cut off
	}
	return err
}

// Wait returns nil after Shutdown, or the error of a listener as soon as it fails.
func (s *Server) Wait() error { return s.serving.Wait() }

// Stopping reports whether Shutdown was called.
func (s *Server) Stopping() bool { return s.stopping.Load() }

// Shutdown stops serving without losing a request. During DrainDelay requests are still answered, each with
// Connection: close. Idle connections stay open, because a load balancer may be sending a request on one of them.
// Then the listener and idle connections close, and requests in progress finish. If ctx ends first, these requests
// are cut off and Shutdown returns ctx's error. The operators' endpoints stop last. A second call returns nil at
// once.
//
// Stop the things that handlers use only after Shutdown: requests need them to the end.
func (s *Server) Shutdown(ctx context.Context) error {
	if s.stopping.Swap(true) {
		return nil
	}
	parts := s.beside()
	for _, p := range parts {
		p.Drain()
	}
	if s.cfg.DrainDelay > 0 {
		backoff.Sleep(ctx, s.cfg.DrainDelay)
		_ = s.listener.Close() // it is closed again below, where errors are returned
		for _, p := range parts {
			_ = p.listener.Close()
		}
		backoff.Sleep(ctx, min(drainGap, s.cfg.DrainDelay))
	}
	var part errgroup.Group
	for _, p := range parts {
		part.Go(func() error { return p.Stop(ctx) })
	}
	err := s.api.Shutdown(ctx)
	if err != nil {
		err = errors.Join(fmt.Errorf("finish requests: %w", err), s.api.Close())
	}
	err = errors.Join(err, part.Wait())
	if closed := s.ops.Shutdown(ctx); closed != nil {
		err = errors.Join(err, s.ops.Close())
	}
	return errors.Join(err, s.serving.Wait())
}

// Close closes all listeners and connections at once.
func (s *Server) Close() error {
	s.stopping.Store(true)
	return errors.Join(s.cut(), s.serving.Wait())
}
