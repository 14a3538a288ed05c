package httpapi

import (
	"log/slog"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/quotasvc/quotasvc/internal/access"
	"github.com/quotasvc/quotasvc/internal/access/link"
	"github.com/quotasvc/quotasvc/internal/catalog"
	"github.com/quotasvc/quotasvc/internal/catalog/gauge"
	"github.com/quotasvc/quotasvc/internal/catalog/override"
	"github.com/quotasvc/quotasvc/internal/gate"
	"github.com/quotasvc/quotasvc/internal/httpapi/forwarded"
	"github.com/quotasvc/quotasvc/internal/httpapi/limitheaders"
	"github.com/quotasvc/quotasvc/internal/httpapi/reference"
	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/ledger/history"
	"github.com/quotasvc/quotasvc/internal/ledger/pg"
	"github.com/quotasvc/quotasvc/internal/ledger/verifier"
	"github.com/quotasvc/quotasvc/internal/notify/webhooks"
	"github.com/quotasvc/quotasvc/internal/report/status"
	"github.com/quotasvc/quotasvc/internal/report/tenantlist"
	"github.com/quotasvc/quotasvc/internal/report/testclock"
)

// DefaultRequestTimeout bounds a request. No caller waits longer than five seconds for a refusal; 0.2 s of that are
// for the time before and after the handlers. The timeout is longer than each timeout below the API, and ends a
// request that has used up several of those.
const DefaultRequestTimeout = 4800 * time.Millisecond

// Config configures a Server. The zero value of a field means its default.
type Config struct {
	// Keys authenticates callers. Required. The server neither starts nor stops it.
	Keys *access.Directory

	// Overrides are the gate's overrides of limits. Required where there are backends.
	Overrides *override.Store

	// RequestTimeout bounds a request; 0: DefaultRequestTimeout. An operation that is in progress when it ends is
	// answered with outcome_unknown.
	RequestTimeout time.Duration

	// LegacyHeaders are sent in addition to the RateLimit headers.
	LegacyHeaders []limitheaders.Legacy

	// TrustedProxies are the proxies whose X-Forwarded-For and X-Real-IP are trusted. Default: none.
	TrustedProxies []netip.Prefix

	// Verifier runs the verifications that clients start. Required where there are backends.
	Verifier *verifier.Verifier

	// Webhooks delivers events. Required where there are backends. The server neither starts nor stops it.
	Webhooks *webhooks.Service

	// Status reads the state of the service. Required where there are backends. The server neither starts nor stops
	// it.
	Status *status.Board

	// Links creates links to the customer's page. Required where there are backends. Its URLs begin with LinkBase;
	// empty: with the base of the request's URL.
	Links    *link.Store
	LinkBase string

	// TestClock moves the ledger's time; nil except in `quotasvc dev`.
	TestClock *testclock.Clock

	// Traced reports whether requests may have a span in their context. The span gets the name of the route. Its
	// trace id is added to exemplars and access lines.
	Traced bool

	// Log gets one line per request. Required.
	Log *slog.Logger

	// Registry gets the metrics of requests. Required.
	Registry *prometheus.Registry
}

// Server answers the requests of the API.
type Server struct {
	gate    *gate.Gate
	ledger  *pg.Ledger
	history *history.Reader
	catalog *catalog.Catalog
	store   *catalog.Store // reads PostgreSQL instead of memory
	cfg     Config
	log     *slog.Logger
	now     func() time.Time // for durations and for headers with a time of day
	limits  *limitheaders.Writer

	reference   *reference.Reference
	keys        *access.Directory
	overrides   *override.Store
	gauges      *gauge.Store
	webhooks    *webhooks.Service
	tenantLists *tenantlist.Reader
	gateways    map[string]*forwarded.Gateway
	proxies     *forwarded.Proxies
	problems    map[errcode.Code]problemKind
	bodies      *bodies
	metrics     *metrics
	pool        sync.Pool

	echo *echo.Echo
}

// New returns a server. It returns an error for unknown sets of headers. It panics if its metrics are already in the
// registry.
func New(g *gate.Gate, l *pg.Ledger, h *history.Reader, c *catalog.Catalog, cfg Config) (*Server, error) {
	if cfg.RequestTimeout == 0 {
		cfg.RequestTimeout = DefaultRequestTimeout
	}
	if err := limitheaders.Check(cfg.LegacyHeaders); err != nil {
		return nil, err
	}
	gauges, err := gauge.NewStore(c.DB())
	if err != nil {
		return nil, err
	}
	s := &Server{
		gate: g, ledger: l, history: h, catalog: c, store: c.Store, cfg: cfg, log: cfg.Log, now: time.Now,
		limits: &limitheaders.Writer{Legacy: cfg.LegacyHeaders},
		keys:   cfg.Keys, overrides: cfg.Overrides, gauges: gauges, webhooks: cfg.Webhooks, problems: problemKinds(), bodies: newBodies(), metrics: newMetrics(cfg.Registry),
		reference: reference.New(), gateways: forwarded.Gateways(), proxies: forwarded.NewProxies(cfg.TrustedProxies, cfg.Log),
	}
	if s.tenantLists, err = tenantlist.New(h, l, c.Store); err != nil {
		return nil, err
	}
	s.pool.New = newRequest
	s.echo = s.router()
	return s, nil
}

// newRequest creates a request for the pool.
func newRequest() any { return new(request) }

// Handler returns the handler of all requests.
func (s *Server) Handler() http.Handler { return s.echo }

// router returns the handler of the API.
func (s *Server) router() *echo.Echo {
	e := echo.New()
	e.HideBanner, e.HidePort = true, true
	e.Use(s.serve)
	e.HTTPErrorHandler = func(err error, c echo.Context) {
		// serve answers every error itself. This handler is for errors that it misses.
		s.log.Error("request not served", "error", err, "path", c.Path())
	}
	for _, r := range slices.Concat(s.routes(), s.pages()) {
		if r.dev && s.cfg.TestClock == nil {
			continue // the client gets 404, as for an unknown path
		}
		switch r.method {
		case methodAny:
			// Echo calls RouteNotFound on a path without routes for any method, known or unknown.
			e.RouteNotFound(r.path, s.guard(r))
		case http.MethodGet:
			e.Add(http.MethodHead, r.path, s.guard(r)) // net/http sends only the headers
			fallthrough
		default:
			e.Add(r.method, r.path, s.guard(r))
		}
	}
	return e
}
