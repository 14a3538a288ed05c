package main

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/quotasvc/quotasvc/internal/events"
	"github.com/quotasvc/quotasvc/internal/ledger/pg"
	"github.com/quotasvc/quotasvc/internal/pgpool"
)

// eventConns bounds the connections that list and deliver events: nobody waits for them.
const eventConns = 4

// newEventPool opens the pool for events.
func newEventPool(ctx context.Context, databaseURL string, login *pgpool.Login) (*pgxpool.Pool, error) {
	cfg, err := pgxpool.ParseConfig(databaseURL)
	if err != nil {
		return nil, fmt.Errorf("database URL: %w", redactedParse(err))
	}
	cfg.MaxConns = eventConns
	cfg.BeforeConnect = login.Apply
	cfg.ConnConfig.RuntimeParams["application_name"] = "quotasvc-events"
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("open the events' pool: %w", err)
	}
	return pool, nil
}

// startEvents starts what lists events and tells what comes due.
func (s *service) startEvents(ctx context.Context, cfg *serviceConfig, m *measurements, l *pg.Ledger) error {
	pool, err := newEventPool(ctx, string(cfg.DatabaseURL), &s.secrets.database)
	if err != nil {
		return err
	}
	s.onStop("event connections", func(context.Context) error { pool.Close(); return nil })
	pgpool.Measure(m.registry, "events", pool)
	t := events.NewTeller(events.TellerConfig{Pool: pool, Sweep: l.NewSweep().Run, Clock: l, Log: s.log, Metrics: m.registry})
	s.onStop("events", t.Stop)
	t.Start()
	return nil
}
