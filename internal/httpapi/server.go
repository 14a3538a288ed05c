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
	"github.com/quotasvc/quotasvc/internal/ledger/pg"
)

// Timeouts of a connection. A client that is slow or silent must not hold one for ever.
const (
	headerTimeout = 5 * time.Second  // a request's header is one packet
	readTimeout   = 15 * time.Second // 1 MiB over a slow line
	writeTimeout  = 15 * time.Second // beyond readTimeout and the request's own deadline
	// idleTimeout is longer than the 60 s after which common load balancers close idle connections: whoever closes first
	// must not be the one a request can be under way to.
	idleTimeout = 90 * time.Second
	// headerBytesMax is far above what a key, a token and a trace header take.
	headerBytesMax = 32 << 10
)

// Config is the server's. The zero value of a field means its default.
type Config struct {
	// AdminKey may do everything. At least bound.MinAdminKey visible ASCII characters.
	AdminKey string

	// RequestTimeout is how long a request may take, 10 s by default: longer than every budget below it, so that it ends
	// only what has lost its way.
	RequestTimeout time.Duration

	// DrainDelay is how long a server that is shutting down says "not ready" before it stops accepting: what a load
	// balancer needs to notice. Zero is none.
	DrainDelay time.Duration

	// LegacyHeaders are sent beside the structured ones.
	LegacyHeaders []LegacyHeaders

	// TrustedProxies are the gateways that are believed when they name their client's address. None: nobody is.
	TrustedProxies []netip.Prefix

	// Checks are what /readyz asks besides PostgreSQL and the catalogue.
	Checks []Check

	// Replicas is what /readyz tells of the other instances; nil where there is no Redis to hear them in. It must not block.
	Replicas func() ReplicaCount

	// Log receives one line per request. Required.
	Log *slog.Logger

	// Registry receives the metrics of requests and is what /metrics shows. Required.
	Registry *prometheus.Registry
}

// Server answers the API on one listener and operators on another.
type Server struct {
	gate    *gate.Gate
	ledger  *pg.Ledger
	catalog *catalog.Catalog
	store   *catalog.Store // the catalogue's, which answers from PostgreSQL
	cfg     Config
	log     *slog.Logger
	now     func() time.Time // for durations, and for headers that tell the time of day
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

// New makes a server; it does not listen yet. It fails if the admin key is unusable, and panics if the registry has its
// metrics already.
func New(g *gate.Gate, l *pg.Ledger, c *catalog.Catalog, cfg Config) (*Server, error) {
	if cfg.RequestTimeout == 0 {
		cfg.RequestTimeout = 10 * time.Second
	}
	known, err := newKeys(cfg.AdminKey)
	if err != nil {
		return nil, err
	}
	if err := CheckLegacyHeaders(cfg.LegacyHeaders); err != nil {
		return nil, err
	}
	s := &Server{
		gate: g, ledger: l, catalog: c, store: c.Store, cfg: cfg, log: cfg.Log, now: time.Now, jitter: randomUpTo,
		keys: known, problems: problemKinds(), bodies: newBodies(), metrics: newMetrics(cfg.Registry),
		gateways: newGateways(), proxies: newProxies(cfg.TrustedProxies, cfg.Log),
	}
	s.pool.New = func() any { return new(request) }
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
		// No WriteTimeout: a profile takes as long as its reader asked for.
	}
	return s, nil
}

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
	// Half of the service is none: the other listener ends too, and Wait tells.
	return errors.Join(fmt.Errorf("%s: %w", what, err), s.api.Close(), s.ops.Close())
}

// Wait returns nil after Shutdown, or the error of the listener that failed, as soon as it has.
func (s *Server) Wait() error { return s.serving.Wait() }

// Shutdown ends serving without losing a request: /readyz says no, the load balancer gets DrainDelay to notice while requests
// are still answered, each with Connection: close; then the listener closes and what is being answered is finished. When ctx
// ends first the rest is cut off and ctx's error returned. The operators' endpoints go last, to be able to say so.
//
// The ledger and the gate must be stopped after this, not before: requests need them to the end.
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

// router is the API.
func (s *Server) router() http.Handler {
	e := echo.New()
	e.HideBanner, e.HidePort = true, true
	e.Use(s.serve)
	e.HTTPErrorHandler = func(err error, c echo.Context) {
		// serve answers every error itself; this is the net under it.
		s.log.Error("request not served", "error", err, "path", c.Path())
	}
	for _, r := range s.routes() {
		if r.method == methodAny {
			// What echo calls for a path without methods it calls for any method, also those nobody has heard of.
			e.RouteNotFound(r.path, s.guard(r))
			continue
		}
		e.Add(r.method, r.path, s.guard(r))
	}
	return e
}
