package gate

import (
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/quotasvc/quotasvc/internal/balances"
	"github.com/quotasvc/quotasvc/internal/catalog"
	"github.com/quotasvc/quotasvc/internal/ledger"
	"github.com/quotasvc/quotasvc/internal/ledger/pg"
	"github.com/quotasvc/quotasvc/internal/ratelimit"
)

// Config says how a Gate decides. The zero value is valid.
type Config struct {
	// LoadsMax is the reads of PostgreSQL that checks may have under way; 0 is DefaultLoadsMax.
	LoadsMax int

	// LoadBudget bounds one of them, the wait for its turn included; 0 is DefaultLoadBudget.
	LoadBudget time.Duration

	Log     *slog.Logger          // nil discards
	Metrics prometheus.Registerer // nil: not registered
	Now     func() time.Time      // nil is time.Now
}

// Gate composes decisions. Its goroutines read balances and end by themselves, each within two budgets of a load, so there is nothing
// to stop. All methods are safe for concurrent use.
type Gate struct {
	ledger    *pg.Ledger
	limiter   *ratelimit.Limiter
	copies    *balances.Cache
	policy    balances.Policy
	terms     *terms
	loader    *loader
	refresher *refresher
	metrics   *gateMetrics
	log       *slog.Logger
	now       func() time.Time
}

// New makes a gate. The ledger must have been opened with copies.Publish as its OnCommit.
func New(l *pg.Ledger, c *catalog.Catalog, limiter *ratelimit.Limiter, copies *balances.Cache, cfg Config) *Gate {
	if cfg.LoadsMax <= 0 {
		cfg.LoadsMax = DefaultLoadsMax
	}
	if cfg.LoadBudget <= 0 {
		cfg.LoadBudget = DefaultLoadBudget
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	metrics := newGateMetrics(cfg.Metrics)
	loader := newLoader(l, cfg, metrics, func(result *ledger.CheckResult) {
		metrics.loads.Inc()
		copies.Publish(result.Copies)
	})
	return &Gate{
		ledger: l, limiter: limiter, copies: copies, policy: copies.Policy(), terms: newTerms(c, cfg.Log, limiter.Forget), metrics: metrics, log: cfg.Log, now: cfg.Now,
		loader: loader, refresher: newRefresher(loader),
	}
}

// outcome is the label of a decision in metrics.
func outcome(err error, replayed bool) string {
	switch {
	case err == nil && replayed:
		return "replayed"
	case err == nil:
		return "allowed"
	}
	return string(CodeOf(err))
}
