package main

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/quotasvc/quotasvc/internal/catalog"
	"github.com/quotasvc/quotasvc/internal/events"
	"github.com/quotasvc/quotasvc/internal/ledger/pg"
	"github.com/quotasvc/quotasvc/internal/pgpool"
	"github.com/quotasvc/quotasvc/internal/webhooks"
)

// eventConns bounds the connections that list and deliver events: nobody waits for them. One of them receives notifications of the job queue.
const eventConns = 6

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

// startEvents starts what lists events, delivers them to webhooks, and tells what comes due.
func (s *service) startEvents(ctx context.Context, cfg *serviceConfig, m *measurements, l *pg.Ledger, c *catalog.Store) (*webhooks.Service, error) {
	pool, err := newEventPool(ctx, string(cfg.DatabaseURL), &s.secrets.database)
	if err != nil {
		return nil, err
	}
	s.onStop("event connections", func(context.Context) error { pool.Close(); return nil })
	pgpool.Measure(m.registry, "events", pool)
	hooks, err := webhooks.New(webhooks.Config{Pool: pool, Catalog: c, AllowPrivate: cfg.WebhookAllowPrivate, Log: s.log, Metrics: m.registry})
	if err != nil {
		return nil, err
	}
	if err := hooks.Start(ctx); err != nil {
		return nil, err
	}
	s.onStop("webhooks", hooks.Stop)
	t := events.NewTeller(events.TellerConfig{Pool: pool, Sweep: l.NewSweep().Run, Clock: l, Each: hooks.Queue, Log: s.log, Metrics: m.registry})
	s.onStop("events", t.Stop)
	t.Start()
	return hooks, nil
}
