package main

import (
	"context"
	"errors"

	"github.com/quotasvc/quotasvc/internal/catalog"
	"github.com/quotasvc/quotasvc/internal/ledger/history"
	"github.com/quotasvc/quotasvc/internal/ledger/pg"
	"github.com/quotasvc/quotasvc/internal/ratelimit"
	"github.com/quotasvc/quotasvc/internal/report/status"
	"github.com/quotasvc/quotasvc/internal/serve/ops"
	"github.com/quotasvc/quotasvc/internal/store/redisstore"
)

// startStatus starts the part that reports the state of the service. It reads the faults through s.shown. The function
// show sets this field before the first request.
func (s *service) startStatus(m *measurements, l *pg.Ledger, h *history.Reader) *status.Board {
	board := status.New(status.Config{Reports: h, Clock: l, Counted: m.registry, Log: s.log, Faults: func() []status.Fault {
		var out []status.Fault
		for _, f := range s.shown.Faults() {
			out = append(out, status.Fault{Part: f.Part, Reason: f.Reason})
		}
		return out
	}})
	board.Start()
	s.onStop("status", board.Stop)
	return board
}

// show sets the functions that report the metrics and the state of the service to operators.
func (s *service) show(ctx context.Context, m *measurements, l *pg.Ledger, c *catalog.Catalog, h *history.Reader, store *redisstore.Store, limiter *ratelimit.Limiter) {
	s.shown = ops.Service{
		Metrics:  m.registry,
		Warnings: s.shown.Warnings,
		Conditions: []ops.Condition{{Name: "catalogue", Check: func() error {
			if c.Snapshot().ReadAt.IsZero() {
				return errors.New("not loaded yet")
			}
			return nil
		}}},
		Backends: []*ops.Backend{ops.NewBackend(ctx, "postgresql", l.Ping, m.registry)},
	}
	if store != nil {
		s.shown.Backends = append(s.shown.Backends, ops.NewBackend(ctx, "redis", store.Ping, m.registry))
		s.shown.Replicas = func() ops.ReplicaCount {
			r := limiter.Replicas()
			return ops.ReplicaCount{Live: r.Live(), DividedBy: r.Count()}
		}
	}
	if h.HasReplica() {
		s.shown.Backends = append(s.shown.Backends, ops.NewBackend(ctx, "report_replica", h.ReplicaState, m.registry))
		s.shown.ReportLag = func() *ops.ReportLag {
			if lag := h.ReplicaLag(); lag != nil {
				return &ops.ReportLag{Seconds: lag.Seconds, Bytes: lag.Bytes}
			}
			return nil
		}
	}
	for _, b := range s.shown.Backends {
		s.onStop("questions to a backend", b.Stop)
	}
}
