package pg

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/quotasvc/quotasvc/internal/store/breaker"
	"github.com/quotasvc/quotasvc/internal/store/citus"
	"github.com/quotasvc/quotasvc/internal/store/pgpool"
)

// Time limits of one connection.
const (
	statementTimeout = 4 * time.Second
	// lockTimeout bounds a batch's wait for a row that another transaction has locked. A batch of another instance
	// locks a row for some milliseconds. A longer lock delays only the calls on that row: they are parked
	// (lockwait.go).
	lockTimeout = 100 * time.Millisecond
	// lockPatience takes the place of lockTimeout for parked calls, which wait on a connection of their own and delay no
	// other calls. If several balances are locked, each round waits this long for one of them.
	lockPatience = 250 * time.Millisecond
	// tableLockTimeout is lockTimeout for statements that wait for no row. They can only wait for a change of the
	// schema, which ends within moments or not at all.
	tableLockTimeout = 2 * time.Second
	idleTxTimeout    = 10 * time.Second // then an instance that hangs inside a transaction loses its locks
	dialTimeout      = 2 * time.Second
	probeTimeout     = 2 * time.Second        // bounds one probe, which opens a connection
	probeEvery       = 250 * time.Millisecond // pause between two probes: operations resume within about a second
	readTimeout      = 3 * time.Second
)

// writerSettings returns settings that force index plans. On fresh or badly analysed tables the planner otherwise
// reads whole tables for the joins with unnest, and throughput drops to a hundredth. With generic plans, statements
// are not planned again for each batch. On Citus each plan depends on the tenants.
func (l *Ledger) writerSettings() map[string]string {
	settings := map[string]string{
		"enable_seqscan": "off", "enable_hashjoin": "off", "enable_mergejoin": "off", "enable_material": "off",
		"enable_bitmapscan": "off", "jit": "off",
		"plan_cache_mode":                     "force_generic_plan",
		"statement_timeout":                   milliseconds(statementTimeout),
		"lock_timeout":                        milliseconds(lockTimeout),
		"idle_in_transaction_session_timeout": milliseconds(idleTxTimeout),
	}
	if l.cluster != nil {
		maps.Copy(settings, citusWriterSettings())
	}
	return settings
}

func readerSettings() map[string]string {
	return map[string]string{
		"jit": "off", "enable_seqscan": "off", "enable_hashjoin": "off", "enable_mergejoin": "off",
		"statement_timeout":                   milliseconds(readTimeout),
		"idle_in_transaction_session_timeout": milliseconds(idleTxTimeout),
	}
}

func milliseconds(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

// newPool returns a pool of connections to the URL's server, or to a node of its cluster.
func newPool(ctx context.Context, of *Config, size int, name string, settings map[string]string, node *citus.Address) (*pgxpool.Pool, error) {
	cfg, err := pgxpool.ParseConfig(of.DatabaseURL)
	if err != nil {
		return nil, fmt.Errorf("ledger: database URL: %w", err)
	}
	if node != nil {
		connectTo(cfg.ConnConfig, *node)
	}
	cfg.MaxConns = int32(size)
	cfg.BeforeConnect = of.Login.Apply
	if of.Traces != nil {
		cfg.ConnConfig.Tracer = pgpool.NewTracer(of.Traces)
	}
	cfg.ConnConfig.ConnectTimeout = dialTimeout
	cfg.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeCacheStatement
	cfg.ConnConfig.RuntimeParams["application_name"], cfg.ConnConfig.RuntimeParams["timezone"] = name, "UTC"
	pgpool.Set(cfg.ConnConfig, settings)
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("ledger: open pool: %w", err)
	}
	return pool, nil
}

// Readers returns the pool for reads. The pool belongs to the ledger.
func (l *Ledger) Readers() *pgxpool.Pool { return l.readers }

// errNoWrites is the cause of refusals while the database can be reached but not written to.
var errNoWrites = errors.New("the database is read-only")

// newBreaker returns the breaker that tracks whether the database can be reached and written to. It probes on
// connections of its own, because connections of the pools may hang.
func newBreaker(cfg *Config) (*breaker.Breaker, error) {
	params, err := pgx.ParseConfig(cfg.DatabaseURL)
	if err != nil {
		return nil, fmt.Errorf("ledger: database URL: %w", err)
	}
	params.ConnectTimeout = probeTimeout
	params.RuntimeParams["application_name"] = "quotasvc-probe"
	probe := func(ctx context.Context) error {
		current := params.Copy()
		_ = cfg.Login.Apply(ctx, current) // Apply never returns an error
		conn, err := pgx.ConnectConfig(ctx, current)
		if err != nil {
			return wayDown(err)
		}
		defer func() { _ = conn.Close(ctx) }()
		var readOnly string
		switch err := conn.QueryRow(ctx, "SHOW transaction_read_only").Scan(&readOnly); {
		case err != nil:
			return wayDown(err)
		case readOnly == "on":
			return errNoWrites
		}
		return nil
	}
	return breaker.New(breaker.Config{Name: "postgresql", Probe: probe, Every: probeEvery, Timeout: probeTimeout, Log: cfg.Log}), nil
}

// wayDown returns err if it means that the database cannot be reached. It returns nil if the database answered with
// another error. For example, the database may have no connection left, while the lanes still have their connections.
func wayDown(err error) error {
	if suggestsAway(err) {
		return err
	}
	return nil
}

// Away returns why the database cannot be reached. It returns nil if the database may be reached, even if only for
// reads.
func (l *Ledger) Away() error {
	cause := l.breaker.Cause()
	if errors.Is(cause, errNoWrites) {
		return nil
	}
	return cause
}

// Suspect makes the breaker probe the database soon. Other packages that use the database call it. It does not wait.
func (l *Ledger) Suspect() { l.breaker.Suspect() }

// onReader runs read on a connection for reads. When the connection turns out to be dead (the server was restarted, or
// failed over), it drops the idle connections and runs read once more.
func (l *Ledger) onReader(ctx context.Context, read func(context.Context, *pgx.Conn) error) error {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	var err error
	for range 2 {
		var conn *pgxpool.Conn
		if conn, err = l.readers.Acquire(ctx); err != nil {
			return unavailable("acquire reader connection", err)
		}
		err = read(ctx, conn.Conn())
		dead := conn.Conn().IsClosed()
		conn.Release()
		if err == nil || !dead || ctx.Err() != nil {
			return err
		}
		l.readers.Reset()
	}
	return err
}
