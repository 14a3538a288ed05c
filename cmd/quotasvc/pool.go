package main

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/quotasvc/quotasvc/internal/store/pgpool"
)

const (
	// catalogPool is the name of the pool that reads and writes the catalogue. Writes are rare, and reads are
	// batched, so it has few connections.
	catalogPool  = "quotasvc-catalog"
	catalogConns = 4

	// eventPool is the name of the pool that lists and delivers events. No request waits for it. One of its
	// connections waits for notifications of the job queue.
	eventPool  = "quotasvc-events"
	eventConns = 6

	// idleTransaction is the time after which PostgreSQL ends an idle transaction. Otherwise an instance that hangs
	// in a transaction would keep its locks.
	idleTransaction = "10s"
)

// openPool opens a pool of connections. Their maximum number is `most`. PostgreSQL lists the connections under the
// given name. The ledger and the reports open their own pools.
func openPool(ctx context.Context, databaseURL, name string, most int32, login *pgpool.Login) (*pgxpool.Pool, error) {
	cfg, err := pgxpool.ParseConfig(databaseURL)
	if err != nil {
		return nil, fmt.Errorf("database URL: %w", redactedParse(err))
	}
	cfg.MaxConns = most
	cfg.BeforeConnect = login.Apply
	cfg.ConnConfig.RuntimeParams["application_name"] = name
	pgpool.Set(cfg.ConnConfig, map[string]string{"idle_in_transaction_session_timeout": idleTransaction})
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("open the pool %s: %w", name, err)
	}
	return pool, nil
}
