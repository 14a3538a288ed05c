package httpapi

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"github.com/quotasvc/quotasvc/internal/catalog"
	"github.com/quotasvc/quotasvc/internal/gate"
	"github.com/quotasvc/quotasvc/internal/ledger"
	"github.com/quotasvc/quotasvc/internal/ledger/history"
	"github.com/quotasvc/quotasvc/internal/ledger/pg"
	"github.com/quotasvc/quotasvc/internal/ledger/verifier"
)

// Timeouts of a connection. A slow or silent client must not hold one for ever.
const (
	// No caller waits longer than five seconds for a refusal. The rest is for what happens around the request.
	requestTimeout = 4800 * time.Millisecond

	headerTimeout = 5 * time.Second  // the header of a request is one packet
	readTimeout   = 15 * time.Second // 1 MiB over a slow line
	writeTimeout  = 15 * time.Second // added to readTimeout and the deadline of the request
	// idleTimeout is longer than the 60 s after which common load balancers close idle connections. The side that closes
	// first must not be the one that receives a request at that moment.
	idleTimeout = 90 * time.Second
	// headerBytesMax is far more than a key, a token and a trace header need.
	headerBytesMax = 32 << 10
)

// Config configures a Server. The zero value of a field means its default.
type Config struct {
	// AdminKey is the key that may do everything. See bound.AdminKey.
	AdminKey string

	// RequestTimeout bounds a request, requestTimeout by default. It is longer than every budget below it, and ends requests that used up
	// several of them.
	RequestTimeout time.Duration

	// DrainDelay is how long a server that shuts down reports "not ready" before it stops accepting, so that load balancers
	// notice. Zero: no delay.
	DrainDelay time.Duration

	// LegacyHeaders are sent in addition to the RateLimit headers.
	LegacyHeaders []LegacyHeaders

	// TrustedProxies are the proxies whose X-Forwarded-For and X-Real-IP are trusted. Default: none.
	TrustedProxies []netip.Prefix

	// Checks are the checks of /readyz in addition to PostgreSQL and the catalogue.
	Checks []Check

	// Replicas returns the counts of instances for /readyz. nil without Redis. It must not block.
	Replicas func() ReplicaCount

	// Verifier runs the verifications that clients ask for. Required where there are backends.
	Verifier *verifier.Verifier

	// Log gets one line per request. Required.
	Log *slog.Logger

	// Registry gets the metrics of requests, and /metrics serves it. Required.
	Registry *prometheus.Registry
}

// Server serves the API on one listener and the operators' endpoints on another.
type Server struct {
	gate    *gate.Gate
	ledger  *pg.Ledger
	history *history.Reader
	catalog *catalog.Catalog
	store   *catalog.Store // reads PostgreSQL instead of memory
	cfg     Config
	log     *slog.Logger
	now     func() time.Time // for durations and for headers with a time of day
	jitter  func(limit time.Duration) time.Duration

	keys     keys
	gateways []gateway
	proxies  *proxies
	problems map[ledger.Code]problemKind
	bodies   *bodies
	metrics  *metrics
	pool     sync.Pool

	api      *http.Server
	ops      *http.Server
	serving  errgroup.Group
	stopping atomic.Bool
}

// New returns a server that does not listen yet. It returns an error for an invalid admin key. It panics if the registry has
// its metrics already.
func New(g *gate.Gate, l *pg.Ledger, h *history.Reader, c *catalog.Catalog, cfg Config) (*Server, error) {
	if cfg.RequestTimeout == 0 {
		cfg.RequestTimeout = requestTimeout
	}
	known, err := newKeys(cfg.AdminKey)
	if err != nil {
		return nil, err
	}
	if err := CheckLegacyHeaders(cfg.LegacyHeaders); err != nil {
		return nil, err
	}
	s := &Server{
		gate: g, ledger: l, history: h, catalog: c, store: c.Store, cfg: cfg, log: cfg.Log, now: time.Now, jitter: randomUpTo,
		keys: known, problems: problemKinds(), bodies: newBodies(), metrics: newMetrics(cfg.Registry),
		gateways: newGateways(), proxies: newProxies(cfg.TrustedProxies, cfg.Log),
	}
	s.pool.New = newRequest
	stderr := slog.NewLogLogger(cfg.Log.Handler(), slog.LevelWarn)
	s.api = &http.Server{
		Handler:           s.router(),
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      readTimeout + cfg.RequestTimeout + writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    headerBytesMax,
		ErrorLog:          stderr,
	}
	s.ops = &http.Server{
		Handler:           s.opsHandler(),
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       readTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    headerBytesMax,
		ErrorLog:          stderr,
		// No WriteTimeout: a profile lasts as long as its reader asked for.
	}
	return s, nil
}

// newRequest makes a request for the pool.
func newRequest() any { return new(request) }

// Start serves the API on api and the operators' endpoints on ops until Shutdown. It returns at once.
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

// Shutdown stops serving without losing a request. /readyz reports "not ready", and for DrainDelay requests are still
// answered, each with Connection: close. Then the listener closes, and requests in progress finish. If ctx ends first, the
// rest is cut off and Shutdown returns ctx's error. The operators' endpoints stop last.
//
// Stop the ledger and the gate after Shutdown: requests need them to the end.
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

// router returns the handler of the API.
func (s *Server) router() http.Handler {
	e := echo.New()
	e.HideBanner, e.HidePort = true, true
	e.Use(s.serve)
	e.HTTPErrorHandler = func(err error, c echo.Context) {
		// serve answers every error itself. This handler is for errors that escape it.
		s.log.Error("request not served", "error", err, "path", c.Path())
	}
	for _, r := range s.routes() {
		if r.method == methodAny {
			// Echo calls RouteNotFound for any method on a path without routes, unknown methods included.
			e.RouteNotFound(r.path, s.guard(r))
			continue
		}
		e.Add(r.method, r.path, s.guard(r))
	}
	return e
}
