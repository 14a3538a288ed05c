package history

import (
	"cmp"
	"context"
	"embed"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"

	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/ledger"
	"github.com/quotasvc/quotasvc/internal/ledger/pg"
	"github.com/quotasvc/quotasvc/internal/store/namedsql"
	"github.com/quotasvc/quotasvc/internal/store/pgpool"
)

//go:embed sql/*.sql
var sqlFiles embed.FS

const (
	// reportsDefault is the number of reports that run at once. More would take PostgreSQL's cores from debits and
	// checks.
	reportsDefault = 3
	// queueMax bounds the reports that wait. queueWait bounds the wait of each report.
	queueMax  = 64
	queueWait = 2 * time.Second
	// reportTimeout bounds the run time of a report. Together with queueWait it is less than the 5 s in which every
	// caller is answered.
	reportTimeout = 2500 * time.Millisecond
	// readTimeout bounds a look-up, which is not a report.
	readTimeout = 3 * time.Second
)

// Config configures a Reader. Zero values mean the defaults.
type Config struct {
	DatabaseURL string                // PostgreSQL, required
	ReplicaURL  string                // a replica for reports; empty: none
	Reports     int                   // reports that run at once
	Metrics     prometheus.Registerer // required
	// Login and ReplicaLogin change user and password of new connections. nil: those of the URL.
	Login, ReplicaLogin *pgpool.Login
	// Traces makes spans of statements; nil: none.
	Traces trace.TracerProvider
}

// Reader answers queries about the past. All methods are safe for concurrent use.
type Reader struct {
	ledger  *pg.Ledger    // reads views of open periods
	primary *pgxpool.Pool // for reports
	replica *pgxpool.Pool // nil: none
	looking []*pgxpool.Pool
	lag     *lag // nil: no replica
	queue   *queue
	sql     map[string]string
}

// Open returns a reader that uses l's views, and connections of its own for reports. It does not wait for PostgreSQL.
func Open(ctx context.Context, l *pg.Ledger, cfg Config) (*Reader, error) {
	cfg.Reports = cmp.Or(cfg.Reports, reportsDefault)
	target := namedsql.Target(l.Cluster() != nil)
	r := &Reader{ledger: l, queue: newQueue(cfg.Reports, cfg.Metrics), sql: namedsql.Must(namedsql.Plain, sqlFiles)}
	var err error
	if r.primary, err = newPool(ctx, target, cfg.DatabaseURL, cfg.Login, cfg.Traces, int32(cfg.Reports), "quotasvc-reports", reportTimeout); err != nil {
		return nil, err
	}
	pgpool.Measure(cfg.Metrics, "reports", r.primary)
	if cfg.ReplicaURL != "" {
		if err := r.openReplica(ctx, target, &cfg); err != nil {
			r.primary.Close()
			return nil, err
		}
	}
	return r, nil
}

// openReplica opens the pool of the replica. It also opens a connection to each server for the checks of the lag,
// because reports may use all other connections.
func (r *Reader) openReplica(ctx context.Context, target namedsql.Target, cfg *Config) (err error) {
	if r.replica, err = newPool(ctx, target, cfg.ReplicaURL, cfg.ReplicaLogin, cfg.Traces, int32(cfg.Reports), "quotasvc-reports", reportTimeout); err != nil {
		return err
	}
	pgpool.Measure(cfg.Metrics, "reports-replica", r.replica)
	for _, of := range []struct {
		url   string
		login *pgpool.Login
	}{{cfg.DatabaseURL, cfg.Login}, {cfg.ReplicaURL, cfg.ReplicaLogin}} {
		pool, err := newPool(ctx, target, of.url, of.login, nil, 1, "quotasvc-lag", lagTimeout)
		if err != nil {
			return err // nothing to close: a pool has no connection before its first use
		}
		r.looking = append(r.looking, pool)
	}
	r.lag = startLag(r.looking[0], r.looking[1], r.sql, cfg.Metrics)
	return nil
}

// Stop closes the connections. Reports that run fail.
func (r *Reader) Stop(context.Context) error {
	r.primary.Close()
	if r.replica != nil {
		r.lag.stop()
		r.replica.Close()
	}
	for _, p := range r.looking {
		p.Close()
	}
	return nil
}

// report is one query that has a slot.
type report struct {
	*Reader

	pool *pgxpool.Pool
}

// reported waits for a slot for a report, and runs it within the time limit of reports.
func reported[V any](ctx context.Context, r *Reader, ask func(context.Context, *report) (V, error)) (answer V, err error) {
	leave, err := r.queue.enter(ctx)
	if err != nil {
		return answer, err
	}
	ctx, cancel := context.WithTimeout(ctx, reportTimeout)
	defer cancel()
	q := &report{Reader: r, pool: r.primary}
	if r.replica != nil {
		q.pool = r.replica
	}
	complete := r.lag.completeUntil() // must be read before the report
	answer, err = ask(ctx, q)
	if s, ok := ctx.Value(sourceKey{}).(*Source); ok && q.pool == r.replica {
		s.Complete = complete
	}
	if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		err = tooSlow(err) // the time limit may have caused any error
	}
	leave(err)
	return answer, err
}

// Report runs a query of another package as a report about a tenant, on the replica if there is one. An empty tenant
// means all tenants. Errors of ask must be *errcode.Error: for example, Failed returns such errors.
func Report[V any](ctx context.Context, r *Reader, tenant string, ask func(context.Context, *pgxpool.Pool) (V, error)) (V, error) {
	return reported(ctx, r, func(ctx context.Context, q *report) (answer V, err error) {
		if tenant != "" {
			if err := r.ledger.MustExist(ctx, tenant); err != nil {
				return answer, err
			}
		}
		return ask(ctx, q.pool)
	})
}

// follow makes the report read the primary from now on, unless the replica has entry seq of the balance. A view comes
// from the primary, and must not be combined with an older journal.
func (q *report) follow(ctx context.Context, k ledger.BalanceKey, seq int64) error {
	if q.pool == q.primary {
		return nil
	}
	newest, err := q.newest(ctx, k)
	if err == nil && newest < seq {
		q.pool = q.primary
	}
	return err
}

// newest returns the seq of the newest entry of a balance.
func (q *report) newest(ctx context.Context, k ledger.BalanceKey) (seq int64, err error) {
	err = q.pool.QueryRow(ctx, q.sql["NewestSeq"], k.Tenant, k.Meter, k.Subject).Scan(&seq)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return 0, Failed("read balance", err)
	}
	return seq, nil
}

// Failed wraps an error of the driver in a report: nothing was changed, a retry is safe.
func Failed(what string, err error) *errcode.Error {
	if isTimeLimit(err) {
		return tooSlow(fmt.Errorf("%s: %w", what, err))
	}
	return unavailable(what, err)
}

func unavailable(what string, err error) *errcode.Error {
	return &errcode.Error{
		Code: errcode.Unavailable, Detail: "the ledger cannot reach its database", RetryAfter: time.Second,
		Cause: fmt.Errorf("%s: %w", what, err),
	}
}

// tooSlow returns the error of a report that the time limit has ended.
func tooSlow(err error) *errcode.Error {
	return &errcode.Error{
		Code: errcode.ReportTooSlow, RetryAfter: 5 * time.Second, Cause: err,
		Detail: fmt.Sprintf("the report takes longer than %s; ask for a shorter time, or for one meter or subject", reportTimeout),
	}
}
