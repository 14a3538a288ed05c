package main

import (
	"context"

	"github.com/quotasvc/quotasvc/internal/catalog"
	"github.com/quotasvc/quotasvc/internal/ledger/pg"
	"github.com/quotasvc/quotasvc/internal/notify/webhooks"
	"github.com/quotasvc/quotasvc/internal/outbox/events"
	"github.com/quotasvc/quotasvc/internal/store/pgpool"
)

// startEvents starts the parts that number new events, deliver events to webhooks, and emit events whose time has
// come.
func (s *service) startEvents(ctx context.Context, cfg *serviceConfig, m *measurements, l *pg.Ledger, store *catalog.Store) (*webhooks.Service, error) {
	pool, err := openPool(ctx, string(cfg.DatabaseURL), eventPool, eventConns, &s.secrets.database)
	if err != nil {
		return nil, err
	}
	s.onStop("event connections", func(context.Context) error { pool.Close(); return nil })
	pgpool.Measure(m.registry, "events", pool)
	hooks, err := webhooks.New(webhooks.Config{Pool: pool, DB: store.DB(), AllowPrivate: cfg.WebhookAllowPrivate, Log: s.log, Metrics: m.registry})
	if err != nil {
		return nil, err
	}
	if err := hooks.Start(ctx); err != nil {
		return nil, err
	}
	s.onStop("webhooks", hooks.Stop)
	t := events.NewDispatcher(events.DispatcherConfig{
		Pool: pool, Sweep: l.NewSweep().Run, AdvanceTenants: store.AdvanceTenants, Clock: l, Each: hooks.Queue, Log: s.log, Metrics: m.registry,
	})
	s.onStop("events", t.Stop)
	t.Start()
	return hooks, nil
}
