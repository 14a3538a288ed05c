package denial

import (
	"cmp"
	"context"
	"embed"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/quotasvc/quotasvc/internal/store/namedsql"
	"github.com/quotasvc/quotasvc/internal/store/pgpool"
)

const (
	// flushEvery is the pause between two flushes. If a process is killed, it loses the denials of this time. A
	// shorter pause costs nothing in an idle service, and more transactions in a busy service.
	flushEvery = time.Second

	// flushTimeout is the longest time of a flush; afterwards unwritten denials stay in memory. chunkTimeout is the
	// longest time of one transaction of a flush.
	flushTimeout = 5 * time.Second
	chunkTimeout = 2 * time.Second

	// chunkTenants is the largest number of tenants in a transaction. So a transaction has at most 10,000 counts of a
	// minute and 50,000 explanations.
	chunkTenants = 500

	// upkeepEvery is the pause between two runs of maintain.
	upkeepEvery   = time.Hour
	upkeepTimeout = 20 * time.Second

	dialTimeout = 2 * time.Second
)

//go:embed sql/*.sql
var sqlFiles embed.FS

// queries are the SQL statements of this package, by name. Loading them cannot fail at run time, because the files
// are embedded and a test loads them.
var queries = namedsql.Must(namedsql.Plain, sqlFiles)

// Config configures a Recorder.
type Config struct {
	DatabaseURL string                       // URL of the PostgreSQL database, required
	Log         *slog.Logger                 // required
	Metrics     prometheus.Registerer        // required
	Clock       interface{ Now() time.Time } // the ledger's clock, required
	Login       *pgpool.Login                // sets user and password of new connections; nil: as in the URL
	Every       time.Duration                // pause between flushes; 0: flushEvery

	// RejectionsHigh is a threshold. events.RejectionsHigh is emitted if one limit refuses at least this number of
	// requests of one tenant in one minute. It is emitted once per tenant, limit and hour. 0: never.
	RejectionsHigh int64
}

// Recorder counts denials and keeps the latest denials of each tenant. A nil Recorder ignores denials.
type Recorder struct {
	memory  *memory
	shadows *shadows
	pool    *pgxpool.Pool
	cfg     Config
	metrics *metrics
	cancel  context.CancelFunc
	done    sync.WaitGroup
}

// Open returns a recorder with a separate connection to PostgreSQL. It does not wait for PostgreSQL.
func Open(ctx context.Context, cfg Config) (*Recorder, error) {
	cfg.Every = cmp.Or(cfg.Every, flushEvery)
	r := &Recorder{memory: newMemory(), shadows: newShadows(), cfg: cfg, metrics: newMetrics(cfg.Metrics), cancel: func() {}}
	conn, err := pgxpool.ParseConfig(cfg.DatabaseURL)
	if err != nil {
		return nil, fmt.Errorf("denials: database URL: %w", err)
	}
	conn.MaxConns, conn.BeforeConnect, conn.ConnConfig.ConnectTimeout = 1, cfg.Login.Apply, dialTimeout
	conn.ConnConfig.RuntimeParams["application_name"], conn.ConnConfig.RuntimeParams["timezone"] = "quotasvc-denials", "UTC"
	limit := strconv.FormatInt(chunkTimeout.Milliseconds(), 10)
	pgpool.Set(conn.ConnConfig, map[string]string{
		"jit": "off", "statement_timeout": limit, "idle_in_transaction_session_timeout": limit,
		"plan_cache_mode": "force_custom_plan", // on Citus, only a custom plan is limited to the tenants' nodes
	})
	if r.pool, err = pgxpool.NewWithConfig(ctx, conn); err != nil {
		return nil, fmt.Errorf("denials: open pool: %w", err)
	}
	return r, nil
}

// Start starts the goroutine that flushes.
func (r *Recorder) Start() {
	ctx, cancel := context.WithCancel(context.Background())
	r.cancel = cancel
	r.done.Go(func() { r.run(ctx) })
}

// Stop stores all denials and shadows, and closes the connection. It fails if they cannot be stored before ctx ends.
func (r *Recorder) Stop(ctx context.Context) error {
	r.cancel()
	r.done.Wait()
	defer r.pool.Close()
	return r.Flush(ctx)
}

// Note counts a denial and keeps its explanation. If d.At is zero, it sets d.At to the present instant. Note does not
// block. It copies the texts of d.
func (r *Recorder) Note(d *Denial) {
	if r == nil {
		return
	}
	if d.At.IsZero() {
		d.At = r.cfg.Clock.Now()
	}
	r.metrics.miss(r.memory.note(d))
}

func (r *Recorder) run(ctx context.Context) {
	flushes, upkeep := time.NewTimer(rand.N(r.cfg.Every)), time.NewTicker(upkeepEvery)
	defer flushes.Stop()
	defer upkeep.Stop()
	r.maintain(ctx)
	for {
		select {
		case <-ctx.Done():
			return
		case <-flushes.C:
			if err := r.Flush(ctx); err != nil && ctx.Err() == nil {
				r.cfg.Log.Warn("denials were not stored; they stay in memory as far as there is room", "error", err)
			}
			flushes.Reset(r.cfg.Every)
		case <-upkeep.C:
			r.maintain(ctx)
		}
	}
}

// maintain creates and drops partitions, if the role may do so, and deletes old explanations.
func (r *Recorder) maintain(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, upkeepTimeout)
	defer cancel()
	now := r.cfg.Clock.Now()
	err := r.pool.AcquireFunc(ctx, func(c *pgxpool.Conn) error {
		failed := Maintain(ctx, c.Conn(), now, r.cfg.Log)
		weeks, err := weeksLeft(ctx, c.Conn(), now)
		if err != nil {
			return err
		}
		r.metrics.weeks.Set(float64(weeks))
		if failed != nil {
			level := slog.LevelInfo
			if weeks < 2 {
				level = slog.LevelWarn
			}
			r.cfg.Log.Log(ctx, level, "partitions of denials were not made or dropped: run `quotasvc migrate partitions` as the role that owns the tables",
				"weeks_ahead", weeks, "error", failed)
		}
		_, err = c.Exec(ctx, queries["ForgetRecent"], now.Add(-KeptFor))
		return err
	})
	if err != nil && ctx.Err() == nil {
		r.cfg.Log.Warn("the partitions of denials cannot be read", "error", err)
	}
}

// Flush stores all denials and shadows since the last flush. If some were certainly not stored, they stay in memory
// as long as there is room. If the outcome is unknown, they are counted as lost.
func (r *Recorder) Flush(ctx context.Context) error {
	return errors.Join(r.flushDenials(ctx), r.flushShadows(ctx))
}

func (r *Recorder) flushDenials(ctx context.Context) error {
	taken := r.memory.take()
	if len(taken) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, flushTimeout)
	defer cancel()
	for chunk := range slices.Chunk(slices.Sorted(maps.Keys(taken)), chunkTenants) {
		kept, err := r.store(ctx, chunk, taken)
		if err != nil {
			for _, tenant := range chunk {
				if !kept {
					r.metrics.miss(taken[tenant].all())
					delete(taken, tenant)
				}
			}
			r.metrics.miss(r.memory.restore(taken))
			return err
		}
		for _, tenant := range chunk {
			delete(taken, tenant)
		}
	}
	return nil
}

// store stores the denials of some tenants in one transaction. If it fails, kept reports whether it is certain that
// nothing was stored and that a retry may succeed.
func (r *Recorder) store(ctx context.Context, tenants []string, of map[string]*noted) (kept bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, chunkTimeout)
	defer cancel()
	conn, err := r.pool.Acquire(ctx)
	if err != nil {
		return true, fmt.Errorf("store denials: %w", err)
	}
	defer conn.Release()
	w, err := writeOf(tenants, of)
	if err != nil {
		return false, err
	}
	add := func(ctx context.Context, tx pgx.Tx) error {
		found, err := r.add(ctx, tx, w)
		if err == nil {
			r.emitHigh(ctx, tx, found)
		}
		return err
	}
	kept, err = send(ctx, conn.Conn(), add)
	if lacksPartition(err) {
		if failed := countsTable.makeWeeks(ctx, conn.Conn(), weeksOf(w.minute), r.cfg.Log); failed != nil {
			r.cfg.Log.Warn("denials are not counted: there is no partition for them: run `quotasvc migrate partitions` as the role that owns the tables", "error", failed)
			r.metrics.miss(missed{counts: w.total()})
			w.dropCounts()
		}
		kept, err = send(ctx, conn.Conn(), add)
	}
	if err != nil {
		return kept, fmt.Errorf("store denials: %w", err)
	}
	return true, nil
}

// all returns the numbers of denials and explanations in n, as losses.
func (n *noted) all() (lost missed) {
	for _, by := range n.counts {
		lost.counts += by
	}
	lost.explanations = int64(len(n.recent))
	return lost
}

// send runs the function `add` in one transaction. If it fails, kept reports whether it is certain that nothing was
// stored and that a retry may succeed.
func send(ctx context.Context, conn *pgx.Conn, add func(context.Context, pgx.Tx) error) (kept bool, err error) {
	tx, err := conn.Begin(ctx)
	if err != nil {
		return true, err
	}
	if err := add(ctx, tx); err != nil {
		_ = tx.Rollback(ctx) // it fails only if the connection is lost, which also rolls back
		return !faulty(err), err
	}
	if err := tx.Commit(ctx); err != nil {
		return undone(err), err
	}
	return true, nil
}

// add stores the counts and explanations of w. It returns the limits that refuse many requests. It writes
// explanations before it reads counts. If several instances have refused requests of one tenant, they wait for each
// other at the tenant's row. So the last instance reads the counts of all instances.
func (r *Recorder) add(ctx context.Context, tx pgx.Tx, w *write) (found []high, err error) {
	var batch pgx.Batch
	if len(w.n) > 0 {
		batch.Queue(queries["AddCounts"], w.tenant, w.minute, w.code, w.meter, w.rule, w.n)
	}
	if len(w.explained) > 0 {
		batch.Queue(queries["AddRecent"], w.explained, w.newest, w.items)
	}
	if tenants, minutes := w.limited(); r.cfg.RejectionsHigh > 0 && len(tenants) > 0 {
		batch.Queue(queries["HighRules"], tenants, minutes, r.cfg.RejectionsHigh).Query(func(rows pgx.Rows) (err error) {
			found, err = pgx.CollectRows(rows, scanHigh)
			return err
		})
	}
	err = tx.SendBatch(ctx, &batch).Close()
	return found, err
}
