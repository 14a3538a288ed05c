package main

import (
	"context"
	"errors"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/quotasvc/quotasvc/internal/httpapi"
	"github.com/quotasvc/quotasvc/internal/ops"
	"github.com/quotasvc/quotasvc/internal/transport"
)

// run listens, starts the service, serves on lst until ctx ends or serving fails, and stops all parts in order. It calls before once PostgreSQL
// answers, and ready once the service answers requests.
func run(ctx context.Context, cfg *serviceConfig, lst *listeners, log *slog.Logger, before func(context.Context) error, ready func(addresses)) error {
	metrics := prometheus.NewRegistry()
	metrics.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	var conns *transport.Server
	endpoints := ops.New(ops.Config{
		Metrics: metrics, Stopping: func() bool { return conns.Stopping() }, Level: cfg.level, Pprof: cfg.Pprof, Log: log,
	})
	conns = transport.New(transport.Config{
		API: httpapi.Unstarted(log), Ops: endpoints, RequestTimeout: httpapi.DefaultRequestTimeout, DrainDelay: cfg.DrainDelay, Log: log,
	})
	conns.Start(lst.api, lst.ops)
	failed := make(chan error, 1)
	go func() { failed <- conns.Wait() }()

	s, err := startWhenPossible(ctx, cfg, endpoints, log, before)
	if err != nil {
		// Nothing was served: there is nothing to drain.
		err = errors.Join(err, conns.Close())
		if ctx.Err() != nil && errors.Is(err, context.Canceled) {
			log.Info("stopped before the service had started")
			return nil
		}
		return err
	}
	defer tuneCollector()()
	endpoints.Show(s.shown)
	conns.SetAPI(s.api)
	at := addresses{api: lst.api.Addr().String(), ops: lst.ops.Addr().String()}
	log.Info("serving", "version", versionText(), "api", at.api, "ops", at.ops,
		"database", cfg.DatabaseURL, "redis", cfg.RedisURL, "local_mode", cfg.RedisURL == "")
	ready(at)
	select {
	case <-ctx.Done():
		log.Info("stopping", "drain_delay", cfg.DrainDelay.String(), "stop_timeout", cfg.StopTimeout.String())
	case err = <-failed:
		log.Error("serving failed, stopping", "error", err)
	}
	stopCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cfg.DrainDelay+cfg.StopTimeout)
	defer cancel()
	err = errors.Join(err, conns.Shutdown(stopCtx), s.stop(stopCtx))
	if err == nil {
		log.Info("stopped")
	}
	return err
}
