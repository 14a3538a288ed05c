package main

import (
	"context"
	"errors"
	"log/slog"
	"net"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/quotasvc/quotasvc/internal/httpapi"
	"github.com/quotasvc/quotasvc/internal/serve/ops"
	"github.com/quotasvc/quotasvc/internal/serve/transport"
)

// run starts the service, serves on lst until ctx ends or serving fails, and then stops all parts in order. It calls
// the function `before` as soon as PostgreSQL answers, and the function `ready` as soon as the service answers
// requests.
func run(ctx context.Context, cfg *serviceConfig, lst *listeners, log *slog.Logger, before func(context.Context) error, ready func(addresses)) error {
	metrics := prometheus.NewRegistry()
	metrics.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), cfg.lines.queue.dropped)
	cfg.warn(log)
	secrets := newRotation(cfg, log)
	certificates, err := cfg.certificates(log)
	if err != nil {
		return err
	}
	var conns *transport.Server
	most := cfg.connectionsMax(log)
	endpoints := ops.New(ops.Config{
		Metrics: metrics, Stopping: func() bool { return conns.Stopping() }, Level: cfg.level, Pprof: cfg.Pprof, Log: log,
		LogStalled: cfg.lines.queue.stalled,
	})
	conns = transport.New(transport.Config{
		Ops: endpoints, RequestTimeout: httpapi.DefaultRequestTimeout, DrainDelay: cfg.DrainDelay, ConnectionsMax: most,
		TLS: certificates, Log: log, Metrics: metrics,
	})
	conns.ServeOps(lst.ops)
	serving, stopServing := context.WithCancel(ctx)
	defer stopServing()
	failed := make(chan error, 1)
	go func() {
		failed <- conns.Wait()
		stopServing()
	}()
	s, err := startWhenPossible(serving, secrets, endpoints, log, before)
	var api, rls, pages net.Listener
	if err == nil {
		if api, rls, pages, err = lst.openClients(ctx); err != nil {
			err = errors.Join(err, s.stopWithin(ctx, cfg.StopTimeout))
		}
	}
	if err != nil { // no request was served, so none is in progress
		closed := conns.Close()
		if ctx.Err() != nil && errors.Is(err, context.Canceled) {
			log.Info("stopped before the service had started")
			return closed
		}
		return errors.Join(err, closed)
	}
	defer tuneCollector()()
	endpoints.Show(s.shown)
	if rls != nil {
		conns.ServePart(envoyPart(s.envoy, cfg.envoyConnections(most)), rls)
	}
	if pages != nil {
		conns.ServePages("console", s.console, pages, cfg.consoleConnections(most))
	}
	conns.ServeAPI(s.api, api)
	if certificates != nil {
		go certificates.Watch(serving)
	}
	at := cfg.addresses(api, lst.ops, rls, pages)
	log.Info("serving", "version", versionText(), "api", at.api, "ops", at.ops,
		"database", cfg.DatabaseURL, "redis", cfg.RedisURL, "local_mode", cfg.RedisURL == "")
	ready(at)
	secrets.adminKey = s.adminKey
	err = cfg.serveUntil(ctx, failed, secrets, certificates, log)
	if s.drain != nil {
		s.drain()
	}
	if err = errors.Join(err, cfg.stop(ctx, conns, s, log)); err == nil {
		log.Info("stopped")
	}
	return err
}

// stop stops the listeners and then the parts, within DrainDelay and StopTimeout. Answers may take ten twelfths of
// StopTimeout. The parts have at least one twelfth, and the last lines of the log have one, but at most logFlush. So a
// client that does not read its answer cannot take the time in which the parts write what they have in memory. Such a
// client is cut off, which is no error of the service.
func (c *serviceConfig) stop(ctx context.Context, conns *transport.Server, s *service, log *slog.Logger) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.DrainDelay+c.StopTimeout*11/12)
	defer cancel()
	c.lines.queue.flushWithin(min(logFlush, c.StopTimeout/12))
	answering, cancelAnswers := context.WithTimeout(ctx, c.DrainDelay+c.StopTimeout*10/12)
	defer cancelAnswers()
	err := conns.Shutdown(answering)
	if errors.Is(err, context.DeadlineExceeded) {
		log.Warn("answers were cut off, because they were not finished or not read in time", "error", err)
		err = nil
	}
	return errors.Join(err, s.stop(ctx))
}

// serveUntil returns nil when ctx ends. If serving fails, it returns the error. After each SIGHUP it reads the
// secrets and certificates again.
func (c *serviceConfig) serveUntil(ctx context.Context, failed <-chan error, secrets *rotation, certificates *transport.Certificates, log *slog.Logger) error {
	for {
		select {
		case <-c.hangups:
			secrets.reload()
			if certificates != nil {
				certificates.Reload()
			}
		case <-ctx.Done():
			log.Info("stopping", "drain_delay", c.DrainDelay.String(), "stop_timeout", c.StopTimeout.String())
			return nil
		case err := <-failed:
			log.Error("serving failed, stopping", "error", err)
			return err
		}
	}
}
