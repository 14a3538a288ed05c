package ledger

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/quotasvc/quotasvc/internal/lane"
	"github.com/quotasvc/quotasvc/internal/period"
)

// Defaults of Config.
const (
	lanesDefault     = 2    // measured on 2 cores: a third lane only moves CPU away from PostgreSQL
	queueDefault     = 8192 // about 150 ms of work at 50,000 debits/s: beyond, refusing is kinder than waiting
	batchDefault     = 1024 // row locks and memory of one transaction; larger batches gain nothing measurable
	readersDefault   = 8
	writersSpare     = 2 // connections beside the lanes': rolls and partition upkeep
	statementTimeout = 4 * time.Second
	lockTimeout      = 3 * time.Second
	idleTxTimeout    = 10 * time.Second // an instance that hangs inside a transaction gives up its locks
	dialTimeout      = 2 * time.Second
	readTimeout      = 3 * time.Second
)

// Config says how a Ledger runs. Zero values mean the defaults.
type Config struct {
	DatabaseURL string                // PostgreSQL, required
	Lanes       int                   // writer lanes, 1..64; each owns one connection while it works
	MaxQueue    int                   // groups waiting per lane before CodeQueueFull
	MaxBatch    int                   // operations per transaction
	Readers     int                   // connections for reads
	Log         *slog.Logger          // required
	Metrics     prometheus.Registerer // required
	LaneMetrics *lane.Metrics         // nil = none
	// VerifyEvery lets a verifier go over all balances in the background, at a low rate, again and again: the pause between
	// two passes. 0 = no such verifier.
	VerifyEvery time.Duration
	Copies      CopyReader // what that verifier compares cached copies by; nil = it does not
	// OnCommit is handed every changed balance right after its COMMIT, before callers are answered. It must not block.
	OnCommit func([]BalanceCopy)
}

// Ledger decides and records. All methods are safe for concurrent use.
type Ledger struct {
	cfg     Config
	log     *slog.Logger
	queries queries
	writers *pgxpool.Pool
	readers *pgxpool.Pool
	lanes   []*lane.Lane[[]*call, struct{}]
	seed    maphash.Seed
	metrics *metrics
	terms   *termsCache
	hints   *hints

	// clockOffset is PostgreSQL's clock minus ours, in nanoseconds. It only chooses partitions to look into.
	clockOffset atomic.Int64

	upkeep *upkeep
	watch  *watch
	jobs   *jobs
}

// BalanceCopy is what a cache may keep of a balance.
type BalanceCopy struct {
	Tenant, Meter, Subject string
	Seq                    int64 // a copy with a higher seq is newer
	Remaining, Limit       int64
	InPlan                 bool      // false: the plan has no such meter; Seq 0 then means that nothing was ever granted
	Allowance              int64     // what the period's end brings, when Renews
	Renews                 bool      // the period's end brings a new allowance
	ResetAt                time.Time // the period's end; zero when it has none
	ValidUntil             time.Time // the next event: from then on the copy is wrong
	// Beyond says that a debit may be charged to more than this balance holds, or less: the plan has overflow or overage, or
	// caps subjects. A copy then proves neither that a debit passes nor that it is denied.
	Beyond bool
	AsOf   time.Time
}

// Open connects the pools and prepares the lanes. It does not wait for PostgreSQL; Start does.
func Open(ctx context.Context, cfg Config) (*Ledger, error) {
	cfg = cfg.withDefaults()
	if cfg.DatabaseURL == "" || cfg.Log == nil || cfg.Metrics == nil {
		return nil, errors.New("ledger: DatabaseURL, Log and Metrics are required")
	}
	if cfg.Lanes < 1 || cfg.Lanes > 64 {
		return nil, fmt.Errorf("ledger: Lanes is %d, allowed are 1 to 64", cfg.Lanes)
	}
	q, err := loadQueries()
	if err != nil {
		return nil, err
	}
	l := &Ledger{cfg: cfg, log: cfg.Log, queries: q, seed: maphash.MakeSeed(), metrics: newMetrics(cfg.Metrics), terms: newTermsCache(), hints: newHints()}
	if l.writers, err = newPool(ctx, cfg.DatabaseURL, cfg.Lanes+writersSpare, writerParams()); err != nil {
		return nil, err
	}
	if l.readers, err = newPool(ctx, cfg.DatabaseURL, cfg.Readers, readerParams()); err != nil {
		l.writers.Close()
		return nil, err
	}
	weight := func(group []*call) int { return len(group) }
	for i := range cfg.Lanes {
		l.lanes = append(l.lanes, lane.New(lane.Config{
			Name: fmt.Sprintf("ledger-%d", i), MaxQueue: cfg.MaxQueue, MaxBatch: cfg.MaxBatch, Metrics: cfg.LaneMetrics, Log: cfg.Log,
		}, weight, l.process))
	}
	l.upkeep = newUpkeep(l)
	l.watch = &watch{ledger: l, cancel: func() {}}
	l.jobs = newJobs()
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
	if c.OnCommit == nil {
		c.OnCommit = func([]BalanceCopy) {}
	}
	return c
}

// writerParams force index plans: on fresh or badly analysed tables the planner otherwise reads whole tables for the joins
// with unnest, and throughput falls a hundredfold. Generic plans save planning each batch anew.
func writerParams() map[string]string {
	return map[string]string{
		"application_name": "quotasvc-writer", "timezone": "UTC",
		"enable_seqscan": "off", "enable_hashjoin": "off", "enable_mergejoin": "off", "enable_material": "off",
		"enable_bitmapscan": "off", "jit": "off",
		"plan_cache_mode":                     "force_generic_plan",
		"statement_timeout":                   milliseconds(statementTimeout),
		"lock_timeout":                        milliseconds(lockTimeout),
		"idle_in_transaction_session_timeout": milliseconds(idleTxTimeout),
	}
}

func readerParams() map[string]string {
	return map[string]string{
		"application_name": "quotasvc-reader", "timezone": "UTC", "jit": "off",
		"enable_seqscan": "off", "enable_hashjoin": "off", "enable_mergejoin": "off",
		"statement_timeout":                   milliseconds(readTimeout),
		"idle_in_transaction_session_timeout": milliseconds(idleTxTimeout),
	}
}

func milliseconds(d time.Duration) string { return fmt.Sprint(d.Milliseconds()) }

func newPool(ctx context.Context, url string, size int, params map[string]string) (*pgxpool.Pool, error) {
	cfg, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, fmt.Errorf("ledger: database URL: %w", err)
	}
	cfg.MaxConns = int32(size)
	cfg.ConnConfig.ConnectTimeout = dialTimeout
	cfg.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeCacheStatement
	for name, value := range params {
		cfg.ConnConfig.RuntimeParams[name] = value
	}
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("ledger: open pool: %w", err)
	}
	return pool, nil
}

// Start reads PostgreSQL's clock, makes the partitions of the coming months and starts the upkeep loop. It fails when
// PostgreSQL does not answer.
func (l *Ledger) Start(ctx context.Context) error {
	if err := l.Ping(ctx); err != nil {
		return err
	}
	if err := l.upkeep.start(ctx); err != nil {
		return err
	}
	l.watch.start()
	return nil
}

// Stop refuses new operations, finishes what is queued and running within ctx's deadline, and closes the pools.
func (l *Ledger) Stop(ctx context.Context) error {
	var errs []error
	for _, lane := range l.lanes {
		errs = append(errs, lane.Stop(ctx))
	}
	errs = append(errs, l.jobs.stop(ctx))
	l.upkeep.stop()
	l.watch.stop()
	l.writers.Close()
	l.readers.Close()
	return errors.Join(errs...)
}

// Ping asks PostgreSQL for its clock.
func (l *Ledger) Ping(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	var now time.Time
	if err := l.readers.QueryRow(ctx, "SELECT clock_timestamp()").Scan(&now); err != nil {
		return unavailable("ask PostgreSQL for the time", err)
	}
	l.observe(now)
	return nil
}

func (l *Ledger) observe(dbNow time.Time) { l.clockOffset.Store(int64(time.Until(dbNow))) }

// estimate is PostgreSQL's clock as far as we know it.
func (l *Ledger) estimate() time.Time { return time.Now().Add(time.Duration(l.clockOffset.Load())) }

// process is a lane's worker.
func (l *Ledger) process(ctx context.Context, groups [][]*call) []struct{} {
	calls := groups[0]
	if len(groups) > 1 {
		calls = make([]*call, 0, len(groups))
		for _, g := range groups {
			calls = append(calls, g...)
		}
	}
	l.execute(ctx, calls)
	return make([]struct{}, len(groups))
}

// laneOf keeps a tenant's operations in one lane of this process, which spares lock waits. Nothing depends on it.
func (l *Ledger) laneOf(tenant string) *lane.Lane[[]*call, struct{}] {
	return l.lanes[maphash.String(l.seed, tenant)%uint64(len(l.lanes))]
}

// submit sends a group of calls of one lane through it. On an error the calls carry no answer and must not be read: the
// lane may still be working on them.
func (l *Ledger) submit(ctx context.Context, ln *lane.Lane[[]*call, struct{}], group []*call) error {
	_, err := ln.Do(ctx, group)
	e := &Error{Code: CodeUnavailable, RetryAfter: time.Second, cause: err}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, lane.ErrFull):
		e.Code, e.Detail = CodeQueueFull, "too many operations are waiting; nothing was done"
	case errors.Is(err, lane.ErrUnfinished), errors.Is(err, lane.ErrPanicked), errors.Is(err, lane.ErrAnswers):
		e.Code, e.Detail = CodeOutcomeUnknown, "the operation was interrupted; retry with the same Idempotency-Key"
	case errors.Is(err, lane.ErrStopped):
		e.Detail = "the service is stopping; nothing was done"
	default:
		e.Detail = "the caller went away, or its deadline passed, while the operation was queued; nothing was done"
	}
	return e
}

// DebitOutcome is the answer to one debit of a batch.
type DebitOutcome struct {
	Result *DebitResult
	Err    error
}

// DebitBatch makes independent debits, each with its own key, and answers each. At most BatchMax.
func (l *Ledger) DebitBatch(ctx context.Context, debits []*Debit) []DebitOutcome {
	out := make([]DebitOutcome, len(debits))
	groups := map[*lane.Lane[[]*call, struct{}]][]int{}
	calls := make([]*call, len(debits))
	for i, d := range debits {
		if err := d.validate(); err != nil {
			out[i].Err = err
			continue
		}
		calls[i] = d.call()
		ln := l.laneOf(d.Tenant)
		groups[ln] = append(groups[ln], i)
	}
	var wg sync.WaitGroup
	for ln, members := range groups {
		wg.Go(func() {
			group := make([]*call, len(members))
			for j, i := range members {
				group[j] = calls[i]
			}
			err := l.submit(ctx, ln, group)
			for _, i := range members {
				if err != nil {
					out[i].Err = l.countError(KindDebit, err)
					continue
				}
				l.count(calls[i])
				out[i].Result, out[i].Err = answer[DebitResult](calls[i])
			}
		})
	}
	wg.Wait()
	return out
}

func (l *Ledger) count(c *call) {
	outcome := "ok"
	switch {
	case c.err != nil:
		outcome = string(CodeOf(c.err))
	case c.replayed:
		outcome = "replayed"
	}
	l.metrics.decided.WithLabelValues(string(c.kind), outcome).Inc()
}

func (l *Ledger) countError(kind Kind, err error) error {
	l.metrics.decided.WithLabelValues(string(kind), string(CodeOf(err))).Inc()
	return err
}

// published hands the changed balances to the cache.
func (l *Ledger) published(m *machine) {
	copies := make([]BalanceCopy, 0, len(m.books))
	for _, b := range m.books {
		if b.broken == nil && b.dirty {
			copies = append(copies, b.copy(later(m.now, b.updatedAt)))
		}
	}
	l.cfg.OnCommit(copies)
}

func (b *book) copy(asOf time.Time) BalanceCopy {
	c := BalanceCopy{
		Tenant: b.Tenant, Meter: b.Meter, Subject: b.Subject, Seq: b.seq, Remaining: b.remaining(), Limit: b.limit(),
		InPlan: b.plan != "", Allowance: b.allowance, Renews: b.renews, ValidUntil: b.nextEvent, AsOf: asOf,
	}
	if b.end.Before(period.Forever) {
		c.ResetAt = b.end
	}
	if t := b.terms; b.plan != "" && b.Subject == "" {
		c.Beyond = t == nil || t.overageAllowed || t.overflowMeter != "" || t.perSubject != nil
	}
	return c
}

// unavailable wraps a failed read: nothing was changed, a retry is safe.
func unavailable(what string, err error) *Error {
	return &Error{
		Code: CodeUnavailable, Detail: "the ledger cannot reach its database", RetryAfter: time.Second,
		cause: fmt.Errorf("%s: %w", what, err),
	}
}
