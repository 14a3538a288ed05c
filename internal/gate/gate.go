package gate

import (
	"cmp"
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
	// LoadsMax is the largest number of concurrent reads of PostgreSQL for checks; 0 means 8.
	LoadsMax int

	// LoadBudget is the longest time of such a read, including the wait for a slot; 0 means 1 s.
	LoadBudget time.Duration

	// Once remembers keys and refunds of charges. nil: only this process remembers them.
	Once *claim.Names

	// IDKey signs the ids of charges and leases. Instances with the same key accept each other's ids; nil: this process
	// accepts only its own.
	IDKey []byte

	// UnsignedUntil is the instant from which unsigned ids of leases are refused. The previous version issued such
	// ids. Zero: unsigned ids are always refused.
	UnsignedUntil time.Time

	// Overrides contains the overrides of tenants and subjects. The gate neither starts nor stops it. nil: no
	// overrides.
	Overrides *override.Cache
	Denials   *denial.Recorder // remembers refusals; the gate neither starts nor stops it. nil: none are remembered

	// Provisioner creates tenants on their first use. nil: a request of a tenant that does not exist fails.
	Provisioner *provision.Provisioner

	Log     *slog.Logger          // nil discards
	Metrics prometheus.Registerer // nil: not registered
	Now     func() time.Time      // nil: the ledger's clock for balances, time.Now for waits
}

// Gate makes the decisions of this package. It need not be stopped: its goroutines only read balances, and each
// goroutine ends within twice Config.LoadBudget. All methods are safe for concurrent use.
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
	named       *recent.Cache[string, BucketNames] // names of buckets, by dimension
	searching   chan struct{}                      // capacity 1: one search for buckets runs at a time
	once        *claim.Names
	chargeIDs   *ratelimit.ReceiptIDs
	leaseIDs    *ratelimit.LeaseIDs
	log         *slog.Logger
	clock       func() time.Time // nil: the ledger's clock

	refundBudget time.Duration // defaultRefundBudget, except in tests
}

// New returns a gate. The ledger must have copies.Publish as its OnCommit.
func New(l *pg.Ledger, c *catalog.Catalog, limiter *ratelimit.Limiter, copies *balances.Cache, cfg Config) *Gate {
	if cfg.LoadsMax <= 0 {
		cfg.LoadsMax = defaultLoadsMax
	}
	if cfg.LoadBudget <= 0 {
		cfg.LoadBudget = defaultLoadBudget
	}
	cfg.Log = cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))
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

// now returns the time of the ledger's clock. Balances and their copies contain times of this clock.
func (g *Gate) now() time.Time {
	if g.clock != nil {
		return g.clock()
	}
	return g.ledger.Now()
}

// withNewest runs the function `do`, which needs a limit by its name. If the limit is not found and the catalogue has
// changed since this process read it, withNewest runs this function once more. So a caller that has just created the
// limit finds it. Names of limits that do not exist cause no reads.
func withNewest[R any](ctx context.Context, g *Gate, do func() (R, error)) (R, error) {
	c := g.tenants.catalog
	before := c.Snapshot()
	result, err := do()
	if CodeOf(err) == errcode.NotFound && (c.CatchUp(ctx) || c.Snapshot() != before) { // read meanwhile
		return do()
	}
	return result, err
}
