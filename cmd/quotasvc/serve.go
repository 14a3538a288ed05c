package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"syscall"
)

// serveCmd runs the service.
type serveCmd struct {
	serviceConfig
	Migrate  bool `env:"QUOTASVC_MIGRATE" help:"Apply missing schema steps before serving."`
	Validate bool `help:"Check the configuration and exit."`
}

// Run serves until ctx ends.
func (c *serveCmd) Run(ctx context.Context, log *slog.Logger) error {
	if err := c.serviceConfig.validate(); err != nil {
		return err
	}
	if c.Validate {
		return nil
	}
	lst, err := listen(ctx, &c.serviceConfig)
	if err != nil {
		return err
	}
	defer lst.close()
	if c.Migrate {
		if err := migrateUp(ctx, string(c.DatabaseURL), log); err != nil {
			return err
		}
	}
	return run(ctx, &c.serviceConfig, lst, log, func(a addresses) { a.print(os.Stdout) })
}

// listeners are opened first, so that a taken port is reported before a migration.
type listeners struct{ api, ops net.Listener }

func listen(ctx context.Context, cfg *serviceConfig) (*listeners, error) {
	api, err := listenOn(ctx, "listen", cfg.Listen)
	if err != nil {
		return nil, err
	}
	ops, err := listenOn(ctx, "ops-listen", cfg.OpsListen)
	if err != nil {
		return nil, errors.Join(err, api.Close())
	}
	return &listeners{api: api, ops: ops}, nil
}

func listenOn(ctx context.Context, flag, address string) (net.Listener, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", address)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("%s is in use by another program: stop that one, or choose another address with %s", address, settingName(flag))
	case errors.Is(err, syscall.EACCES):
		return nil, fmt.Errorf("%s: this user may not use that port: choose one above 1023 with %s", address, settingName(flag))
	case err != nil:
		return nil, fmt.Errorf("listen on %s, %s: %w", address, settingName(flag), err)
	}
	return l, nil
}

// close closes the listeners. Closing them twice is harmless.
func (l *listeners) close() {
	_ = l.api.Close()
	_ = l.ops.Close()
}

// addresses are the addresses that the service listens on.
type addresses struct{ api, ops string }

// print writes the addresses for users and for scripts that start the service on port 0.
func (a addresses) print(out io.Writer) {
	fmt.Fprintf(out, "API http://%s\nops http://%s\n", a.api, a.ops)
}

// run starts the service, serves on lst until ctx ends or serving fails, and stops all parts in order. It calls ready once,
// when the service answers requests.
func run(ctx context.Context, cfg *serviceConfig, lst *listeners, log *slog.Logger, ready func(addresses)) error {
	s, err := start(ctx, cfg, lst, log)
	if err != nil {
		return err
	}
	defer tuneCollector()()
	at := addresses{api: lst.api.Addr().String(), ops: lst.ops.Addr().String()}
	log.Info("serving", "version", versionText(), "api", at.api, "ops", at.ops,
		"database", cfg.DatabaseURL, "redis", cfg.RedisURL, "local_mode", cfg.RedisURL == "")
	ready(at)
	failed := make(chan error, 1)
	go func() { failed <- s.server.Wait() }()
	select {
	case <-ctx.Done():
		log.Info("stopping", "drain_delay", cfg.DrainDelay.String(), "stop_timeout", cfg.StopTimeout.String())
	case err = <-failed:
		log.Error("serving failed, stopping", "error", err)
	}
	stopCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cfg.DrainDelay+cfg.StopTimeout)
	defer cancel()
	err = errors.Join(err, s.stop(stopCtx))
	if err == nil {
		log.Info("stopped")
	}
	return err
}
