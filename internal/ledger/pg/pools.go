package pg

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/quotasvc/quotasvc/internal/ledger"
)

// Bounds of what one connection waits for.
const (
	statementTimeout = 4 * time.Second
	lockTimeout      = 3 * time.Second
	idleTxTimeout    = 10 * time.Second // an instance that hangs inside a transaction gives up its locks
	dialTimeout      = 2 * time.Second
	readTimeout      = 3 * time.Second
)

// writerParams force index plans. On fresh or badly analysed tables the planner otherwise reads whole tables for the joins
// with unnest, and throughput falls a hundredfold. Generic plans save planning each batch again.
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

func milliseconds(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

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

// Readers returns the pool for reads. It belongs to the ledger.
func (l *Ledger) Readers() *pgxpool.Pool { return l.readers }

// onReader runs read on a connection for reads. When the connection turns out to be dead (the server was restarted, or failed
// over), it drops the idle connections and runs read once more.
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

// unavailable wraps a failed read: nothing was changed, a retry is safe.
func unavailable(what string, err error) *ledger.Error {
	return &ledger.Error{
		Code: ledger.CodeUnavailable, Detail: "the ledger cannot reach its database", RetryAfter: time.Second,
		Cause: fmt.Errorf("%s: %w", what, err),
	}
}
