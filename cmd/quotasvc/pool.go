package main

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/quotasvc/quotasvc/internal/outbox/auditlog"
	"github.com/quotasvc/quotasvc/internal/store/pgpool"
	"github.com/quotasvc/quotasvc/internal/store/pgstore"
)

const (
	// catalogPool is the name of the pool with which a command reads and writes the catalogue. In the service it is
	// the pool of the room pgstore.Reading; the other rooms have pools of their own.
	catalogPool  = "quotasvc-catalog"
	catalogConns = 4

	// administrationConns is the number of changes at a time. One caller makes at most half of them, so others wait
	// for two of its changes at most.
	administrationConns = 4

	// strangerConns is the number of connections for look-ups of invented links and cookies. At 20 ms to PostgreSQL
	// they carry about 80 look-ups a second.
	strangerConns = 2

	// eventPool is the name of the pool that lists and delivers events. No request waits for it. One of its
	// connections waits for notifications of the job queue.
	eventPool  = "quotasvc-events"
	eventConns = 6

	// idleTransaction is the time after which PostgreSQL ends an idle transaction. Otherwise an instance that hangs
	// in a transaction would keep its locks.
	idleTransaction = "10s"
)

// roomPools has the pool of each room of pgstore.
type roomPools = map[pgstore.Room]*pgxpool.Pool

// openRooms opens the pools of pgstore's rooms.
func (s *service) openRooms(ctx context.Context, cfg *serviceConfig, m *measurements) (roomPools, error) {
	pools := roomPools{}
	for room, of := range map[pgstore.Room]struct {
		name, label string
		most        int32
	}{
		pgstore.Reading:        {catalogPool, "catalogue", catalogConns},
		pgstore.Administration: {"quotasvc-administration", "administration", administrationConns},
		pgstore.Memory:         {"quotasvc-memory", "memory", pgstore.MemoryConns},
		pgstore.Strangers:      {"quotasvc-strangers", "strangers", strangerConns},
	} {
		pool, err := openPool(ctx, string(cfg.DatabaseURL), of.name, of.most, &s.secrets.database)
		if err != nil {
			return nil, err
		}
		s.onStop(of.label+" connections", func(context.Context) error { pool.Close(); return nil })
		pgpool.Measure(m.registry, of.label, pool)
		pools[room] = pool
	}
	return pools, nil
}

// callerOf returns the name of the caller that shares a room of pgstore with others: the tenant of a bound key, or
// else the key. A tenant can make many keys.
func callerOf(ctx context.Context) string {
	actor := auditlog.From(ctx)
	if actor.Tenant != "" {
		return "tenant " + actor.Tenant
	}
	return actor.KeyID
}

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
