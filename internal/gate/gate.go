package gate

import (
	"context"
	"crypto/rand"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/quotasvc/quotasvc/internal/catalog"
	"github.com/quotasvc/quotasvc/internal/catalog/override"
	"github.com/quotasvc/quotasvc/internal/gate/balances"
	"github.com/quotasvc/quotasvc/internal/gate/provision"
	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/kit/recent"
	"github.com/quotasvc/quotasvc/internal/ledger"
	"github.com/quotasvc/quotasvc/internal/ledger/pg"
	"github.com/quotasvc/quotasvc/internal/ratelimit"
	"github.com/quotasvc/quotasvc/internal/report/denial"
	"github.com/quotasvc/quotasvc/internal/store/claim"
)

// Config configures a Gate. The zero value is valid.
type Config struct {
	// LoadsMax bounds the concurrent reads of PostgreSQL for checks; 0 means 8.
	LoadsMax int

	// LoadBudget bounds one such read, including the wait for a slot; 0 means 1 s.
	LoadBudget time.Duration

	// Once remembers keys and refunds of charges; nil: they are remembered in this process only.
	Once *claim.Names

	// IDKey signs the ids of charges and leases. Instances with the same key accept each other's ids; nil: this process
	// accepts only its own.
	IDKey []byte

	// UnsignedUntil is the instant from which unsigned ids of leases are refused. The version before issued such ids.
	// Zero: they are always refused.
	UnsignedUntil time.Time

	// Overrides has the overrides of tenants and subjects. The gate neither starts nor stops it. nil: none.
	Overrides *override.Cache
	Denials   *denial.Recorder // remembers refusals. The gate neither starts nor stops it. nil: none are remembered

	// Provisioner creates tenants on their first use; nil: they must exist.
	Provisioner *provision.Provisioner

	Log     *slog.Logger          // nil discards
	Metrics prometheus.Registerer // nil: not registered
	Now     func() time.Time      // nil: the ledger's clock for balances, time.Now for waits
}

// Gate composes decisions. It needs no stop: its goroutines read balances, and each ends by itself within twice
// Config.LoadBudget. All methods are safe for concurrent use.
type Gate struct {
	ledger      *pg.Ledger
	limiter     *ratelimit.Limiter
	copies      *balances.Cache
	policy      balances.Policy
	tenants     *tenants
	overrides   *override.Cache
	provisioner *provision.Provisioner
	loader      *loader
	refresher   *refresher
	metrics     *gateMetrics
	denials     *denial.Recorder
	refusals    *refusals
	named       *recent.Cache[string, BucketNames] // by dimension
	searching   chan struct{}                      // has room for one search for buckets
	once        *claim.Names
	chargeIDs   *ratelimit.ReceiptIDs
	leaseIDs    *ratelimit.LeaseIDs
	log         *slog.Logger
	clock       func() time.Time // nil: the ledger's

	refundBudget time.Duration // defaultRefundBudget, except in tests
}

// New makes a gate. The ledger must have copies.Publish as its OnCommit.
func New(l *pg.Ledger, c *catalog.Catalog, limiter *ratelimit.Limiter, copies *balances.Cache, cfg Config) *Gate {
	if cfg.LoadsMax <= 0 {
		cfg.LoadsMax = defaultLoadsMax
	}
	if cfg.LoadBudget <= 0 {
		cfg.LoadBudget = defaultLoadBudget
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Once == nil {
		cfg.Once = claim.New(nil)
	}
	if cfg.IDKey == nil {
		cfg.IDKey = []byte(rand.Text())
	}
	metrics := newGateMetrics(cfg.Metrics)
	loader := newLoader(l, cfg, metrics, func(result *ledger.CheckResult) {
		metrics.loads.Inc()
		copies.Publish(result.Copies)
	})
	g := &Gate{
		ledger: l, limiter: limiter, copies: copies, policy: copies.Policy(),
		tenants: newTenants(c, cfg, limiter.Forget), overrides: cfg.Overrides, provisioner: cfg.Provisioner,
		loader: loader, refresher: newRefresher(loader), refundBudget: defaultRefundBudget,
		named: recent.NewCache[string, BucketNames](namesKept, nil), searching: make(chan struct{}, 1), once: cfg.Once,
		chargeIDs: ratelimit.NewReceiptIDs(ratelimit.KeyFor(cfg.IDKey, "charges")),
		leaseIDs:  ratelimit.NewLeaseIDs(ratelimit.KeyFor(cfg.IDKey, "leases"), cfg.UnsignedUntil),
		metrics:   metrics, denials: cfg.Denials, log: cfg.Log, clock: cfg.Now,
	}
	g.refusals = newRefusals(g)
	return g
}

// now returns the time of the ledger's clock. Balances and their copies carry instants of this clock.
func (g *Gate) now() time.Time {
	if g.clock != nil {
		return g.clock()
	}
	return g.ledger.Now()
}

// withNewest runs do, which needs a limit by its name. If there is no such limit and the catalogue has changed since
// this process read it, it runs do once more: a caller that has just created the limit finds it. Names of limits that
// do not exist cause no read.
func withNewest[R any](ctx context.Context, g *Gate, do func() (R, error)) (R, error) {
	c := g.tenants.catalog
	before := c.Snapshot()
	result, err := do()
	if CodeOf(err) == errcode.NotFound && (c.CatchUp(ctx) || c.Snapshot() != before) { // or read while do ran
		return do()
	}
	return result, err
}
