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

	"github.com/alecthomas/kong"
)

// serveCmd is the command that runs the service.
type serveCmd struct {
	serviceConfig
	Migrate  bool `env:"QUOTASVC_MIGRATE" help:"Apply missing schema steps before serving."`
	Validate bool `help:"Check the configuration and exit."`
}

// Run serves requests until ctx ends. With --validate it only reports what is wrong with the settings.
func (c *serveCmd) Run(ctx context.Context, program *kong.Kong, log *slog.Logger, level *slog.LevelVar, lines *flood, hangups chan os.Signal) error {
	c.level, c.lines, c.hangups = level, lines, hangups
	warnUnknown(program.Model, log)
	if err := c.serviceConfig.validate(); err != nil {
		return err
	}
	if c.Validate {
		c.warn(log)
		_, err := c.certificates(log)
		return err
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
	return run(ctx, &c.serviceConfig, lst, log, before, func(a addresses) { go a.print(os.Stdout) }) // nobody may read it
}

// listeners opens the listeners of the service. The listener for operators is opened first. The addresses for clients
// are only checked at first, so that an address in use is reported before a migration. They are opened when the service
// can answer; before that, connections are refused. If a connection is refused, every load balancer sends the request
// to the next instance, for any method, because nothing was sent yet. A load balancer would pass an error response on
// to the client, and a connection that waits would delay the client.
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

// bind returns an error unless a listener can be opened at the address. It does not listen, because a client may
// connect to a listener, and closing the listener would cut off that client.
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

// openClients opens the listeners for clients: api for the API, rls for Envoy's rate limit service, and pages for the
// console. rls is nil if the rate limit service is off. pages is nil if the console has no address of its own.
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

// explainListen adds to an error of a listener what the operator must do.
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

// addresses has the URLs at which the service listens. rls is host:port of Envoy's rate limit service, or empty if
// that service is off. console is empty if the console has no address of its own.
type addresses struct{ api, ops, rls, console string }

// print writes the addresses to out, for users, and for scripts that start the service at a free port (port 0).
func (a addresses) print(out io.Writer) {
	text := fmt.Sprintf("API %s\nops %s\n", a.api, a.ops)
	if a.console != "" {
		text += fmt.Sprintf("console %s\n", a.console)
	}
	if a.rls != "" {
		text += fmt.Sprintf("envoy-rls %s\n", a.rls)
	}
	_, _ = io.WriteString(out, text)
}
