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
func (c *serveCmd) Run(ctx context.Context, log *slog.Logger, level *slog.LevelVar) error {
	c.level = level
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
	before := func(context.Context) error { return nil }
	if c.Migrate {
		before = func(ctx context.Context) error { return migrateUp(ctx, string(c.DatabaseURL), log) }
	}
	return run(ctx, &c.serviceConfig, lst, log, before, func(a addresses) { a.print(os.Stdout) })
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
