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
func (c *serveCmd) Run(ctx context.Context, log *slog.Logger, level *slog.LevelVar, lines *flood, hangups chan os.Signal) error {
	c.level, c.lines, c.hangups = level, lines, hangups
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

// listeners are the listeners of the service. The operators' listener is opened first. The addresses for clients are
// only bound at first, so that a taken port is reported before a migration. They start to listen when the service can
// answer. Before that, connections are refused. Every load balancer retries a refused connection at the next
// instance, for all methods, because nothing was sent. An error response would be sent to the client, and a waiting
// connection would delay the client.
type listeners struct {
	cfg *serviceConfig
	ops net.Listener
}

func listen(ctx context.Context, cfg *serviceConfig) (*listeners, error) {
	if err := explainListen(bind(cfg.Listen), "listen", cfg.Listen); err != nil {
		return nil, err
	}
	if cfg.EnvoyRLSListen != "" {
		if err := explainListen(bind(cfg.EnvoyRLSListen), "envoy-rls-listen", cfg.EnvoyRLSListen); err != nil {
			return nil, err
		}
	}
	if at := cfg.ConsoleListen; at != "" && at != consoleOff {
		if err := explainListen(bind(at), "console-listen", at); err != nil {
			return nil, err
		}
	}
	ops, err := listenOn(ctx, "ops-listen", cfg.OpsListen)
	if err != nil {
		return nil, err
	}
	return &listeners{cfg: cfg, ops: ops}, nil
}

// bind reports whether the address is free. It does not listen, because closing the listener would cut off a new
// connection.
func bind(address string) error {
	at, err := net.ResolveTCPAddr("tcp", address)
	if err != nil {
		return err
	}
	family, socketAddress := syscall.AF_INET, syscall.Sockaddr(&syscall.SockaddrInet4{Port: at.Port})
	if ip := at.IP.To4(); ip != nil {
		socketAddress = &syscall.SockaddrInet4{Port: at.Port, Addr: [4]byte(ip)}
	} else if at.IP != nil {
		family, socketAddress = syscall.AF_INET6, &syscall.SockaddrInet6{Port: at.Port, Addr: [16]byte(at.IP)}
	}
	fd, err := syscall.Socket(family, syscall.SOCK_STREAM, 0)
	if err != nil {
		return fmt.Errorf("socket: %w", err)
	}
	defer func() { _ = syscall.Close(fd) }()
	if err := syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1); err != nil { // as in package net
		return fmt.Errorf("setsockopt: %w", err)
	}
	if err := syscall.Bind(fd, socketAddress); err != nil {
		return fmt.Errorf("bind: %w", err)
	}
	return nil
}

// openClients opens the listeners for clients: of the API, of Envoy's rate limit service, and of the console. rls is
// nil if the rate limit service is off. pages is nil if the console has no address of its own.
func (l *listeners) openClients(ctx context.Context) (api, rls, pages net.Listener, err error) {
	defer func() {
		if err != nil {
			for _, opened := range []net.Listener{api, rls} {
				if opened != nil {
					_ = opened.Close()
				}
			}
		}
	}()
	if api, err = listenOn(ctx, "listen", l.cfg.Listen); err != nil {
		return nil, nil, nil, err
	}
	if l.cfg.EnvoyRLSListen != "" {
		if rls, err = listenOn(ctx, "envoy-rls-listen", l.cfg.EnvoyRLSListen); err != nil {
			return api, nil, nil, err
		}
	}
	if at := l.cfg.ConsoleListen; at != "" && at != consoleOff {
		pages, err = listenOn(ctx, "console-listen", at)
	}
	return api, rls, pages, err
}

func listenOn(ctx context.Context, flag, address string) (net.Listener, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", address)
	if err != nil {
		return nil, explainListen(err, flag, address)
	}
	return l, nil
}

// explainListen adds the next step to a listen error.
func explainListen(err error, flag, address string) error {
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("%s is in use by another program: stop that one, or choose another address with %s", address, settingName(flag))
	case errors.Is(err, syscall.EACCES):
		return fmt.Errorf("%s: this user may not use that port: choose one above 1023 with %s", address, settingName(flag))
	case err != nil:
		return fmt.Errorf("listen on %s, %s: %w", address, settingName(flag), err)
	}
	return nil
}

// close closes the operators' listener. It may be called twice.
func (l *listeners) close() { _ = l.ops.Close() }

// addresses are the URLs on which the service listens. rls is host:port of Envoy's rate limit service, or empty if it
// is off.
type addresses struct{ api, ops, rls, console string }

// print writes the addresses for users and for scripts that start the service on port 0.
func (a addresses) print(out io.Writer) {
	fmt.Fprintf(out, "API %s\nops %s\n", a.api, a.ops)
	if a.console != "" {
		fmt.Fprintf(out, "console %s\n", a.console)
	}
	if a.rls != "" {
		fmt.Fprintf(out, "envoy-rls %s\n", a.rls)
	}
}
