package transport

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"github.com/quotasvc/quotasvc/internal/kit/backoff"
	"github.com/quotasvc/quotasvc/internal/kit/metric"
	"github.com/quotasvc/quotasvc/internal/kit/proven"
	"github.com/quotasvc/quotasvc/internal/kit/recent"
)

// Time limits of a connection. They prevent a slow or silent client from keeping a connection for ever.
const (
	headerTimeout = 5 * time.Second  // the header of a request normally is one packet
	readTimeout   = 15 * time.Second // enough for 1 MiB over a slow line
	writeTimeout  = 15 * time.Second // added to readTimeout and the time limit of the request
	// idleTimeout is longer than 60 s, after which common load balancers close idle connections. The load balancer
	// must close first. If the server closed first, a request could arrive at this moment and be lost.
	idleTimeout = 90 * time.Second
	// headerBytesMax bounds the header of a request. It is far more than a key, a token and a trace header need.
	headerBytesMax = 32 << 10
)

const (
	// opsConnectionsMax bounds the connections of operators, for example for probes, scrapes and profiles. The
	// service reserves file descriptors for these connections.
	opsConnectionsMax = 64

	// opsGrace is how long a shutdown waits for answers to operators, such as a scrape whose client does not read.
	opsGrace = time.Second

	// bodyGrace is how long a connection that is about to be closed still accepts the rest of a request body. So a
	// client that reads the answer only after it has sent the whole body gets the answer. A slow client cannot keep
	// the connection.
	bodyGrace = 500 * time.Millisecond

	// drainGap is the time between the end of listening and http.Server.Shutdown. After Shutdown starts, net/http
	// drops a request that it has just read on a new connection, without an answer. Load balancers send a request
	// immediately after they open a connection.
	drainGap = 500 * time.Millisecond
)

// Config configures a Server.
type Config struct {
	// Ops is the handler of the endpoints for operators. Required.
	Ops http.Handler

	// RequestTimeout is the longest time that a handler of the API may take. Some time later the answer is cut off.
	RequestTimeout time.Duration

	// DrainDelay is how long a server that is shutting down still accepts connections, so that load balancers notice
	// the shutdown. If it is 0, the server closes its listeners at once.
	DrainDelay time.Duration

	// ConnectionsMax bounds the connections of clients. A further connection is closed before it is served. Required.
	ConnectionsMax int

	// TLS has the certificates of the API. If it is nil, the API uses plain HTTP.
	TLS *Certificates

	// Log gets a line for each connection that failed. Required.
	Log *slog.Logger

	// Metrics gets the metrics of connections. Required.
	Metrics prometheus.Registerer
}

// Part is a server on a further listener, with its own protocol. It is drained and stopped together with the API.
type Part struct {
	Name           string // name of the listener, in metrics and errors
	Protocol       string // name of the protocol for ALPN, used with TLS
	ConnectionsMax int
	KeyWithin      time.Duration               // a connection that has shown no right key for so long is closed; 0: no limit
	Serve          func(net.Listener) error    // serves; it returns when the listener or the part is closed
	Drain          func()                      // informs load balancers that the server stops soon
	Stop           func(context.Context) error // finishes requests in progress, and aborts them when its context ends
}

// besideAPI is a part and its listener.
type besideAPI struct {
	*Part

	listener net.Listener
}

// Server serves the API on one listener, the endpoints for operators on a second listener, and optional parts on
// further listeners.
type Server struct {
	cfg      Config
	api      *http.Server
	ops      *http.Server
	metrics  *metrics
	known    *recent.Cache[netip.Addr, struct{}] // the known addresses
	listener net.Listener                        // listener of the API
	parts    atomic.Pointer[[]besideAPI]         // nil: there are no parts
	serving  errgroup.Group
	stopping atomic.Bool
}

// New returns a server that does not listen yet. It panics if the registry already has the metrics of a server.
func New(cfg Config) *Server {
	s := &Server{cfg: cfg, metrics: newMetrics(cfg.Metrics), known: recent.NewCache[netip.Addr, struct{}](knownMax, nil)}
	if cfg.TLS != nil {
		metric.GaugeFunc(cfg.Metrics, "quotasvc_tls_certificate_expiry_timestamp_seconds",
			"When the API's current certificate expires, in seconds since 1970.",
			func() float64 { return float64(cfg.TLS.expires().Unix()) })
	}
	s.api = newServer(&cfg)
	s.api.ConnContext = s.connContext
	s.api.WriteTimeout = readTimeout + cfg.RequestTimeout + writeTimeout
	s.ops = newServer(&cfg)
	s.ops.WriteTimeout = readTimeout + writeTimeout // net/http/pprof adds the time that the request of a profile names
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
	// Only HTTP/1.1, which load balancers use towards servers. The bound on connections, closing a connection after
	// an answer, and draining require that a connection has only one request at a time.
	server.Protocols.SetHTTP1(true)
	return server
}

// ServeOps serves the endpoints for operators on l until Shutdown. It returns at once.
func (s *Server) ServeOps(l net.Listener) {
	capped := newCapped(l, opsConnectionsMax, s.metrics, "ops", nil)
	s.ops.ConnState = capped.observe
	s.serving.Go(func() error { return s.served(s.ops.Serve(capped), "serve operations") })
}

// ServeAPI serves h on l until Shutdown. It returns at once.
func (s *Server) ServeAPI(h http.Handler, l net.Listener) {
	capped := newCapped(l, s.cfg.ConnectionsMax, s.metrics, "api", s.known)
	s.api.Handler, s.api.ConnState = s.guarded(h), capped.observe
	var accepting net.Listener = capped
	if s.cfg.TLS != nil {
		accepting = tls.NewListener(capped, s.cfg.TLS.config("http/1.1"))
	}
	s.listener = accepting
	s.serving.Go(func() error { return s.served(s.api.Serve(accepting), "serve the API") })
}

// ServePart serves p on l until Shutdown, with the API's certificate if there is one. It returns at once. It must not
// be called concurrently.
func (s *Server) ServePart(p *Part, l net.Listener) {
	var accepting net.Listener = tracked{newCapped(l, p.ConnectionsMax, s.metrics, p.Name, s.known), s.visitor, p.KeyWithin}
	if s.cfg.TLS != nil {
		accepting = tls.NewListener(accepting, s.cfg.TLS.config(p.Protocol))
	}
	all := append(slices.Clone(s.beside()), besideAPI{p, accepting})
	s.parts.Store(&all)
	s.serving.Go(func() error { return s.served(p.Serve(accepting), "serve "+p.Name) })
}

// visitor returns the visitor at a remote address. Once the visitor is known, its address is remembered.
func (s *Server) visitor(at net.Addr) *proven.Addr {
	if v, ok := at.(*proven.Addr); ok {
		return v
	}
	return &proven.Addr{Addr: at, Visitor: proven.New(func() { s.known.Put(addressOf(at), struct{}{}) })}
}

// connContext is the ConnContext hook of servers. It puts the visitor into the context of requests.
func (s *Server) connContext(ctx context.Context, conn net.Conn) context.Context {
	return proven.With(ctx, s.visitor(conn.RemoteAddr()).Visitor)
}

// beside returns the parts with their listeners.
func (s *Server) beside() []besideAPI {
	if all := s.parts.Load(); all != nil {
		return *all
	}
	return nil
}

// ServePages serves h on l until Shutdown, as a part with this name. The handler h serves pages for browsers.
func (s *Server) ServePages(name string, h http.Handler, l net.Listener, most int) {
	server := newServer(&s.cfg)
	server.Handler, server.WriteTimeout, server.ConnContext = s.guarded(h), s.api.WriteTimeout, s.connContext
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

// guarded returns a handler that calls h and adds the headers and checks that all answers of the API need.
//
// A request with Transfer-Encoding closes its connection. RFC 9112 6.3 requires this if the request also has a
// Content-Length. The bytes that follow may be a request that a proxy before the service has not seen. But net/http
// removes this Content-Length, so every request with Transfer-Encoding closes its connection. Clients send JSON with a
// Content-Length, so this costs them nothing.
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
			// Here it is not known whether more bytes of the body follow. The connection ends in any case. Without
			// this deadline net/http would read for up to readTimeout.
			_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodyGrace))
		}
	})
}

// served returns nil if a listener was closed by Shutdown or Close. Otherwise it closes all listeners and returns the
// error.
func (s *Server) served(err error, what string) error {
	if errors.Is(err, http.ErrServerClosed) || s.stopping.Load() {
		return nil
	}
	// The service needs all of its listeners. So the other listeners are closed, too, and Wait returns the error.
	return errors.Join(fmt.Errorf("%s: %w", what, err), s.cut())
}

// cut closes all listeners and connections.
func (s *Server) cut() error {
	err := errors.Join(s.api.Close(), s.ops.Close())
	for _, p := range s.beside() {
		now, cancel := context.WithCancel(context.Background())
		cancel()
		_ = p.Stop(now) // its error only says that requests were aborted
	}
	return err
}

// Wait returns nil after Shutdown, or the error of a listener as soon as the listener fails.
func (s *Server) Wait() error { return s.serving.Wait() }

// Stopping reports whether Shutdown was called.
func (s *Server) Stopping() bool { return s.stopping.Load() }

// Shutdown stops serving without losing a request. During DrainDelay requests are still answered, each with
// Connection: close. Idle connections stay open in this time, because a load balancer may be sending a request on one
// of them. Then the listeners and idle connections close, and requests in progress finish. If ctx ends first, these
// requests are aborted, and Shutdown returns the error of ctx. The endpoints for operators stop last. A second call
// returns nil at once.
//
// Stop the objects that handlers use only after Shutdown, because requests need them until their end.
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
		_ = s.listener.Close() // it is closed again below, which returns the errors
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
	last, cancel := context.WithTimeout(ctx, opsGrace)
	defer cancel()
	if closed := s.ops.Shutdown(last); closed != nil {
		err = errors.Join(err, s.ops.Close())
	}
	return errors.Join(err, s.serving.Wait())
}

// Close closes all listeners and connections at once.
func (s *Server) Close() error {
	s.stopping.Store(true)
	return errors.Join(s.cut(), s.serving.Wait())
}
