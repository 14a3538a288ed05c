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

// listeners are where the service listens. The operators' listener is opened first. The API's address is only tried at first, so that a taken
// port is reported before a migration; it is opened when the service can answer. A refused connection sends every load balancer to the next
// instance, for all methods, because nothing was sent; a refusal in an answer reaches the client, and a connection that waits costs it its time.
type listeners struct {
	cfg *serviceConfig
	ops net.Listener
}

func listen(ctx context.Context, cfg *serviceConfig) (*listeners, error) {
	l := &listeners{cfg: cfg}
	api, err := l.openAPI(ctx)
	if err != nil {
		return nil, err
	}
	if l.ops, err = listenOn(ctx, "ops-listen", cfg.OpsListen); err != nil {
		return nil, errors.Join(err, api.Close())
	}
	if err := api.Close(); err != nil {
		return nil, errors.Join(err, l.ops.Close())
	}
	return l, nil
}

// openAPI opens the API's listener.
func (l *listeners) openAPI(ctx context.Context) (net.Listener, error) {
	return listenOn(ctx, "listen", l.cfg.Listen)
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

// close closes the operators' listener. Closing it twice is harmless.
func (l *listeners) close() { _ = l.ops.Close() }

// addresses are the URLs that the service listens on.
type addresses struct{ api, ops string }

// print writes the addresses for users and for scripts that start the service on port 0.
func (a addresses) print(out io.Writer) {
	fmt.Fprintf(out, "API %s\nops %s\n", a.api, a.ops)
}
