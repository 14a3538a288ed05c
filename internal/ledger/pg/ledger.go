package pg

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"hash/maphash"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"

	"github.com/quotasvc/quotasvc/internal/kit/clock"
	"github.com/quotasvc/quotasvc/internal/kit/lane"
	"github.com/quotasvc/quotasvc/internal/ledger"
	"github.com/quotasvc/quotasvc/internal/ledger/agreed"
	"github.com/quotasvc/quotasvc/internal/ledger/journal"
	"github.com/quotasvc/quotasvc/internal/store/breaker"
	"github.com/quotasvc/quotasvc/internal/store/citus"
	"github.com/quotasvc/quotasvc/internal/store/namedsql"
	"github.com/quotasvc/quotasvc/internal/store/pgpool"
)

//go:embed sql/*.sql
var sqlFiles embed.FS

// Defaults of Config.
const (
	lanesDefault   = 2    // all instances share them, at least 1 each; on 2 cores a third takes CPU from PostgreSQL
	lanesOnCitus   = 32   // maximum: one for each shard group, so that a node that hangs delays only its own tenants
	queueDefault   = 8192 // about 150 ms of work at 50,000 debits/s: then a refusal is better than a longer wait
	batchDefault   = 1024 // bounds row locks and memory of one transaction; larger batches gain nothing measurable
	readersDefault = 8
	writersSpare   = 3 // connections besides the lanes': for rolls, partition upkeep and locked balances
)

// Config configures a Ledger. Zero values mean the defaults.
type Config struct {
	DatabaseURL    string                // PostgreSQL, required
	Lanes          int                   // writer lanes, 1..64, one connection each. 0: see Instances, lanesOnCitus
	Instances      func() int            // number of instances, which share the lanes if Lanes is 0; nil: only this one
	MaxQueue       int                   // groups of calls that may wait in one lane; others get errcode.QueueFull
	MaxBatch       int                   // operations per transaction
	Readers        int                   // connections for reads
	CachedBalances int                   // bound of each cache of learnedCache; 0: learnedDefault
	AnswerBudget   time.Duration         // how long a caller waits, in a queue too; 0: refusalMax, and queueMax in a queue
	Log            *slog.Logger          // required
	Metrics        prometheus.Registerer // required
	LaneMetrics    *lane.Metrics         // nil: none
	Tracer         trace.Tracer          // spans of batches; nil: none
	Traces         trace.TracerProvider  // spans of statements; nil: none
	// Clock returns the time of decisions, even if PostgreSQL's clock and the instance's clock disagree. nil: a clock
	// with the defaults.
	Clock *clock.Clock
	// ThroughCoordinator sends all statements to the URL's server, even if each node of a Citus cluster could be
	// queried directly.
	ThroughCoordinator bool
	// Login changes user and password of new connections. nil: those of the URL.
	Login *pgpool.Login
	// OnCommit receives every changed balance right after its COMMIT, before callers are answered. It must not block.
	OnCommit func([]ledger.BalanceCopy)
}

// Ledger decides operations and records them in PostgreSQL. All methods are safe for concurrent use.
type Ledger struct {
	cfg      Config
	log      *slog.Logger
	sql      map[string]string
	writers  *pgxpool.Pool
	readers  *pgxpool.Pool
	probe    *pgxpool.Pool  // one connection for Ping, so that reads cannot delay it
	cluster  *citus.Cluster // nil: PostgreSQL without Citus
	nodes    *citus.Nodes   // writers of each node; nil: all statements go through writers
	lanes    []*writerLane
	inUse    atomic.Int32 // number of lanes in use, from the first lane on
	share    bool         // inUse depends on the number of instances
	lockWait *lockWait
	breaker  *breaker.Breaker
	seed     maphash.Seed
	metrics  *metrics
	learned  *learnedCache

	limits limits

	need atomic.Int32 // how likely the next batch needs grants or terms of its balances, 0..needMax

	clock *clock.Clock

	listedMonths sync.Map     // months (ledger.Month) that are in journal_months, as far as this process knows
	latestMonth  atomic.Int32 // latest month with entries, if a look-up has found entries in a month ahead of the clock

	journal *journal.Journal
	upkeep  *upkeep
	jobs    *jobs
}

// Open queries whether the tables are distributed, and prepares the pools and the lanes.
func Open(ctx context.Context, cfg Config) (*Ledger, error) {
	if cfg.DatabaseURL == "" || cfg.Log == nil || cfg.Metrics == nil {
		return nil, errors.New("ledger: DatabaseURL, Log and Metrics are required")
	}
	lanes := cfg.Lanes
	cfg = cfg.withDefaults()
	if cfg.Lanes < 1 || cfg.Lanes > 64 {
		return nil, fmt.Errorf("ledger: Lanes is %d, allowed are 1 to 64", cfg.Lanes)
	}
	l := &Ledger{
		cfg: cfg, log: cfg.Log, seed: maphash.MakeSeed(), metrics: newMetrics(cfg.Metrics), learned: newLearnedCache(cfg.CachedBalances), limits: promisedLimits,
		clock: cfg.Clock,
	}
	if cfg.AnswerBudget > 0 {
		l.limits = limits{answer: cfg.AnswerBudget, queue: cfg.AnswerBudget}
	}
	var err error
	if l.cluster, err = detectCitus(ctx, &cfg); err != nil {
		return nil, err
	}
	if l.cluster != nil && lanes == 0 {
		cfg.Lanes = min(l.cluster.Groups.Count(), lanesOnCitus)
		l.cfg = cfg
	}
	l.share = l.cluster == nil && lanes == 0 && cfg.Instances != nil
	l.shareLanes()
	l.sql = namedsql.Must(namedsql.Target(l.cluster != nil), sqlFiles, agreed.SQL)
	l.journal = journal.New(cfg.Log)
	for _, p := range []struct {
		name, application string
		pool              **pgxpool.Pool
		size              int
		settings          map[string]string
	}{
		{"writers", "quotasvc-writer", &l.writers, cfg.Lanes + writersSpare, l.writerSettings()},
		{"readers", "quotasvc-reader", &l.readers, cfg.Readers, readerSettings()},
		{"probe", "quotasvc-reader", &l.probe, 1, readerSettings()},
	} {
		// A pool has no connection before its first use, so there is nothing to close if the next pool fails.
		if *p.pool, err = newPool(ctx, &cfg, p.size, p.application, p.settings, nil); err != nil {
			return nil, err
		}
		pgpool.Measure(cfg.Metrics, p.name, *p.pool)
	}
	l.nodes = l.newNodes()
	if l.breaker, err = newBreaker(&cfg); err != nil {
		return nil, err
	}
	l.lockWait = newLockWait(l)
	l.metrics.watch(cfg.Metrics, l)
	for i := range cfg.Lanes {
		l.lanes = append(l.lanes, lane.New(lane.Config{
			Name: fmt.Sprintf("ledger-%d", i), MaxQueue: cfg.MaxQueue, MaxBatch: cfg.MaxBatch, Metrics: cfg.LaneMetrics, Log: cfg.Log,
			Tracer: cfg.Tracer,
		}, weigh, l.runQueued))
	}
	l.upkeep = newUpkeep(l)
	l.jobs = newJobs(rollsMax, l.log)
	return l, nil
}

func (c Config) withDefaults() Config {
	set := func(v *int, to int) {
		if *v == 0 {
			*v = to
		}
	}
	set(&c.Lanes, lanesDefault)
	set(&c.MaxQueue, queueDefault)
	set(&c.MaxBatch, batchDefault)
	set(&c.Readers, readersDefault)
	if c.Clock == nil {
		c.Clock = NewClock(0, c.Log)
	}
	if c.OnCommit == nil {
		c.OnCommit = func([]ledger.BalanceCopy) {}
	}
	return c
}

// Start reads PostgreSQL's clock, creates the partitions of the coming months if the database role has the right, and
// starts the background loops. It fails if PostgreSQL does not answer.
func (l *Ledger) Start(ctx context.Context) error {
	if err := l.Ping(ctx); err != nil {
		return err
	}
	l.warnDurability(ctx)
	l.nodes.Reach(ctx)
	l.upkeep.start(ctx)
	return nil
}

// warnDurability logs a warning if PostgreSQL answers COMMIT before it has written the commit: a confirmed operation
// may be lost then.
func (l *Ledger) warnDurability(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	var level string
	if err := l.writers.QueryRow(ctx, "SHOW synchronous_commit").Scan(&level); err == nil && level == "off" {
		l.log.Warn("synchronous_commit is off: a crash of PostgreSQL loses operations that were confirmed",
			"remedy", "ALTER ROLE or ALTER DATABASE ... RESET synchronous_commit, or set it to on in postgresql.conf")
	}
}

// Stop refuses new operations, finishes the queued and running operations until ctx's deadline, and closes the pools.
func (l *Ledger) Stop(ctx context.Context) error {
	var errs []error
	for _, lane := range l.lanes {
		errs = append(errs, lane.Stop(ctx))
	}
	errs = append(errs, l.lockWait.stop(ctx), l.jobs.stop(ctx))
	l.breaker.Stop()
	l.upkeep.stop()
	l.writers.Close()
	l.nodes.Close()
	l.readers.Close()
	l.probe.Close()
	return errors.Join(errs...)
}
