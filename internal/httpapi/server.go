package httpapi

import (
	"cmp"
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

// DefaultRequestTimeout is the maximum time of a request. A caller waits at most 5 s for a refusal. This leaves 0.2 s
// for the time before and after the handlers. DefaultRequestTimeout is longer than each time limit of the packages
// that the API calls. It ends a request that has used up several of these limits.
const DefaultRequestTimeout = 4800 * time.Millisecond

// Config configures a Server. If a field is zero, its default is used.
type Config struct {
	// Keys authenticates callers. Required. The server neither starts nor stops Keys.
	Keys *access.Directory

	// Overrides has the overrides of limits that the gate uses. Required if there are backends.
	Overrides *override.Store

	// RequestTimeout bounds the time of a request; 0: DefaultRequestTimeout. If an operation is still in progress
	// after this time, the answer is outcome_unknown.
	RequestTimeout time.Duration

	// LegacyHeaders are the older header sets that are sent in addition to the RateLimit headers.
	LegacyHeaders []limitheaders.Legacy

	// TrustedProxies are the proxies whose headers X-Forwarded-For and X-Real-IP are trusted. Default: no proxies.
	TrustedProxies []netip.Prefix

	// Verifier runs the verifications that clients start. Required if there are backends.
	Verifier *verifier.Verifier

	// Webhooks delivers events. Required if there are backends. The server neither starts nor stops Webhooks.
	Webhooks *webhooks.Service

	// Status reads the state of the service. Required if there are backends. The server neither starts nor stops
	// Status.
	Status *status.Board

	// Links creates links to the customer's pages. Required if there are backends. The URL of a link begins with
	// LinkBase, or with the base of the request's URL if LinkBase is empty.
	Links    *link.Store
	LinkBase string

	// TestClock moves the ledger's time. It is nil except in `quotasvc dev`.
	TestClock *testclock.Clock

	// Traced is true if requests may have a span in their context. The server then sets the span's name to the route,
	// and adds the trace id to exemplars and access lines.
	Traced bool

	// Log receives one line for each request. Required.
	Log *slog.Logger

	// Registry is the registry for the metrics of requests. Required.
	Registry *prometheus.Registry
}

// Server answers the requests of the REST API.
type Server struct {
	gate    *gate.Gate
	ledger  *pg.Ledger
	history *history.Reader
	catalog *catalog.Catalog
	store   *catalog.Store // reads PostgreSQL, not the copy in memory
	cfg     Config
	log     *slog.Logger
	now     func() time.Time // for durations and for headers with a point in time
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

// New returns a server. It returns an error if cfg.LegacyHeaders is invalid. It panics if cfg.Registry already has
// metrics with the same names.
func New(g *gate.Gate, l *pg.Ledger, h *history.Reader, c *catalog.Catalog, cfg Config) (*Server, error) {
	cfg.RequestTimeout = cmp.Or(cfg.RequestTimeout, DefaultRequestTimeout)
	if err := limitheaders.Check(cfg.LegacyHeaders); err != nil {
		return nil, err
	}
	s := &Server{
		gate: g, ledger: l, history: h, catalog: c, store: c.Store, cfg: cfg, log: cfg.Log, now: time.Now,
		limits: &limitheaders.Writer{Legacy: cfg.LegacyHeaders},
		keys:   cfg.Keys, overrides: cfg.Overrides, gauges: gauge.NewStore(c.DB()), webhooks: cfg.Webhooks, problems: problemKinds(), bodies: newBodies(), metrics: newMetrics(cfg.Registry),
		reference: reference.New(), gateways: forwarded.Gateways(), proxies: forwarded.NewProxies(cfg.TrustedProxies, cfg.Log),
	}
	s.tenantLists = tenantlist.New(h, l, c.Store)
	s.pool.New = newRequest
	s.echo = s.router()
	return s, nil
}

// newRequest returns a new request for the pool.
func newRequest() any { return new(request) }

// Handler returns the handler that answers all requests.
func (s *Server) Handler() http.Handler { return s.echo }

// router returns the handler of the API.
func (s *Server) router() *echo.Echo {
	e := echo.New()
	e.HideBanner, e.HidePort = true, true
	e.Use(s.serve)
	e.HTTPErrorHandler = func(err error, c echo.Context) {
		// serve answers every error itself. This handler is called only for an error that serve has missed.
		s.log.Error("request not served", "error", err, "path", c.Path())
	}
	for _, r := range slices.Concat(s.routes(), s.pages()) {
		if r.dev && s.cfg.TestClock == nil {
			continue // the client gets 404, as for an unknown path
		}
		switch r.method {
		case methodAny:
			// Echo calls a RouteNotFound handler for every method, if the path has no other routes.
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
