package history

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.opentelemetry.io/otel/trace"

	"github.com/quotasvc/quotasvc/internal/store/namedsql"
	"github.com/quotasvc/quotasvc/internal/store/pgpool"
)

const (
	dialTimeout = 2 * time.Second
	// cancelGrace is how long a connection waits for the end of a statement that it has cancelled, before it is closed.
	cancelGrace = time.Second

	queryCanceled = "57014" // SQLSTATE
)

// newPool opens a pool whose connections cancel their statement on the server when the context ends, so that an
// abandoned report costs nothing.
func newPool(ctx context.Context, target namedsql.Target, url string, login *pgpool.Login, traces trace.TracerProvider, size int32, name string, statement time.Duration) (*pgxpool.Pool, error) {
	cfg, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, fmt.Errorf("history: database URL: %w", err)
	}
	cfg.MaxConns = size
	cfg.BeforeConnect = login.Apply
	if traces != nil {
		cfg.ConnConfig.Tracer = pgpool.NewTracer(traces)
	}
	cfg.ConnConfig.ConnectTimeout = dialTimeout
	cfg.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeCacheStatement
	cfg.ConnConfig.BuildContextWatcherHandler = func(c *pgconn.PgConn) ctxwatch.Handler {
		return &pgconn.CancelRequestContextWatcherHandler{Conn: c, DeadlineDelay: cancelGrace}
	}
	cfg.ConnConfig.RuntimeParams["application_name"], cfg.ConnConfig.RuntimeParams["timezone"] = name, "UTC"
	pgpool.Set(cfg.ConnConfig, map[string]string{
		"jit": "off",
		// Without fresh statistics the planner reads whole tables, or sorts a balance's rows to find the first row.
		// Every query has an index.
		"enable_seqscan": "off", "enable_hashjoin": "off", "enable_mergejoin": "off", "enable_bitmapscan": "off", "enable_sort": "off",
		"plan_cache_mode":                     planMode(target),
		"statement_timeout":                   strconv.FormatInt(statement.Milliseconds(), 10),
		"idle_in_transaction_session_timeout": strconv.FormatInt(statement.Milliseconds(), 10),
	})
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("history: open pool: %w", err)
	}
	return pool, nil
}

// isTimeLimit reports whether a statement was ended by its time limit, in the server or in this process.
func isTimeLimit(err error) bool {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return e.Code == queryCanceled
	}
	return errors.Is(err, context.DeadlineExceeded)
}

// planMode returns the planner's mode: one generic plan per connection. On Citus each execution is planned for its
// tenant, because the plan determines the node.
func planMode(target namedsql.Target) string {
	if target == namedsql.Citus {
		return "force_custom_plan"
	}
	return "force_generic_plan"
}
