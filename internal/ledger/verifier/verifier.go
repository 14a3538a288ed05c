package verifier

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/ledger"
	"github.com/quotasvc/quotasvc/internal/ledger/agreed"
	"github.com/quotasvc/quotasvc/internal/ledger/audit"
	"github.com/quotasvc/quotasvc/internal/store/namedsql"
	"github.com/quotasvc/quotasvc/internal/store/pgpool"
)

//go:embed sql/*.sql
var sqlFiles embed.FS

const (
	// connections is enough for a verification, for the watch, and for their progress and state.
	connections = 4
	// queryTimeout bounds a statement of this package. The auditor sets its own bound.
	queryTimeout = 3 * time.Second
	dialTimeout  = 2 * time.Second
	// idleTxTimeout ends the transaction of an instance that hangs, so that it does not keep dead row versions.
	idleTxTimeout = time.Minute
)

// Config configures a Verifier.
type Config struct {
	DatabaseURL string                // PostgreSQL, required
	Log         *slog.Logger          // required
	Metrics     prometheus.Registerer // required
	Target      namedsql.Target       // whether the tables are distributed over a Citus cluster
	// Every is the pause between two passes of the watch. 0: no watch.
	Every time.Duration
	// Login changes user and password of new connections. nil: those of the URL.
	Login  *pgpool.Login
	Copies CopyReader // reads the cached copies that verifications compare; nil: no copies are compared
}

// Verifier verifies the ledger's tables.
type Verifier struct {
	cfg     Config
	log     *slog.Logger
	sql     map[string]string
	pool    *pgxpool.Pool
	auditor *audit.Auditor
	metrics *metrics
	slot    *slot
	watch   *watch

	wholeUpTo     int64         // see the constant wholeUpTo
	positionEvery time.Duration // time between two saved positions of a full pass

	copiesPatience time.Duration // see the constant copiesPatience
}

// Open prepares the connections. It does not wait for PostgreSQL.
func Open(ctx context.Context, cfg Config) (*Verifier, error) {
	if cfg.DatabaseURL == "" || cfg.Log == nil || cfg.Metrics == nil {
		return nil, errors.New("verifier: DatabaseURL, Log and Metrics are required")
	}
	v := &Verifier{
		cfg: cfg, log: cfg.Log, sql: namedsql.Must(cfg.Target, sqlFiles, agreed.SQL), metrics: newMetrics(cfg.Metrics), slot: newSlot(),
		wholeUpTo: wholeUpTo, positionEvery: positionEvery, copiesPatience: copiesPatience,
	}
	v.watch = &watch{verifier: v, cancel: func() {}}
	var err error
	if v.pool, err = newPool(ctx, &cfg); err != nil {
		return nil, err
	}
	v.auditor = audit.New(v.pool, cfg.Target)
	return v, nil
}

// Start starts the watch, if there is one.
func (v *Verifier) Start() { v.watch.start() }

// Stop ends the running verification and the watch after their present chunks, and closes the connections. It waits
// for the verification until ctx ends.
func (v *Verifier) Stop(ctx context.Context) error {
	err := v.slot.stop(ctx)
	v.watch.stop()
	if err == nil {
		v.pool.Close() // Close would wait for a verification that has not ended
	}
	return err
}

func newPool(ctx context.Context, of *Config) (*pgxpool.Pool, error) {
	cfg, err := pgxpool.ParseConfig(of.DatabaseURL)
	if err != nil {
		return nil, fmt.Errorf("verifier: database URL: %w", err)
	}
	cfg.MaxConns = connections
	cfg.BeforeConnect = of.Login.Apply
	cfg.ConnConfig.ConnectTimeout = dialTimeout
	cfg.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeCacheStatement
	cfg.ConnConfig.RuntimeParams["application_name"], cfg.ConnConfig.RuntimeParams["timezone"] = "quotasvc-verifier", "UTC"
	pgpool.Set(cfg.ConnConfig, map[string]string{
		"jit": "off",
		// If table statistics are bad, the planner reads whole tables for the joins with unnest.
		"enable_seqscan": "off", "enable_hashjoin": "off", "enable_mergejoin": "off",
		"statement_timeout":                   milliseconds(queryTimeout),
		"idle_in_transaction_session_timeout": milliseconds(idleTxTimeout),
	})
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("verifier: open pool: %w", err)
	}
	return pool, nil
}

func milliseconds(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

// unavailable wraps a failed read or write of the verifier's own rows.
func unavailable(what string, err error) *errcode.Error {
	return &errcode.Error{
		Code: errcode.Unavailable, Detail: "the verifier cannot reach its database", RetryAfter: time.Second,
		Cause: fmt.Errorf("%s: %w", what, err),
	}
}

// mustExist returns errcode.TenantNotFound if the tenant does not exist. The empty tenant stands for all.
func (v *Verifier) mustExist(ctx context.Context, tenant string) error {
	if tenant == "" {
		return nil
	}
	if e := ledger.ValidateName("tenant", tenant); e != nil {
		return e
	}
	ctx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	var exists bool
	if err := v.pool.QueryRow(ctx, v.sql["TenantExists"], tenant).Scan(&exists); err != nil {
		return unavailable("look up tenant", err)
	}
	if !exists {
		return errcode.Errorf(errcode.TenantNotFound, "tenant", "tenant %q does not exist", tenant)
	}
	return nil
}
