package main

import (
	"log/slog"
	"net"
	"syscall"

	"github.com/quotasvc/quotasvc/internal/httpapi/envoyrls"
	"github.com/quotasvc/quotasvc/internal/pages/console"
	"github.com/quotasvc/quotasvc/internal/serve/transport"
)

const (
	// filesReserved is the number of file descriptors that clients' connections leave for other uses. Operators have 64
	// connections, each node of Redis up to 16, PostgreSQL 16 besides readers and lanes. The others are for listeners,
	// files and the runtime.
	filesReserved = 128

	// envoyConnectionsMax bounds the connections of Envoy proxies: each of their workers has one connection.
	envoyConnectionsMax = 512

	// consoleConnectionsMax bounds the connections of browsers: each browser opens six.
	consoleConnectionsMax = 512

	// lanesReserved is the number of file descriptors for the ledger's writers if the number of writers is not
	// configured. It is the maximum on Citus.
	lanesReserved = 32

	// connectionsDefaultMax bounds the derived number. A connection takes about 20 kB.
	connectionsDefaultMax = 20_000
)

// connectionsMax returns the maximum number of client connections. Clients get at least half of the limit of open
// files, even if the limit is low.
func (c *serviceConfig) connectionsMax(log *slog.Logger) int {
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err != nil {
		log.Warn("the limit of open files cannot be read", "error", err)
		files.Cur = 1024
	}
	limit := int(min(files.Cur, 1<<30))
	room := max(limit-filesReserved-c.Readers-max(c.LedgerLanes, lanesReserved), limit/2)
	room -= c.envoyConnections(room)
	room -= c.consoleConnections(room)
	switch {
	case c.ConnectionsMax == 0:
		return min(room, connectionsDefaultMax)
	case c.ConnectionsMax > room:
		log.Warn("QUOTASVC_CONNECTIONS_MAX leaves too few open files for operators, PostgreSQL and Redis: raise the limit of open files (ulimit -n)",
			"connections_max", c.ConnectionsMax, "open_files", limit, "fits", room)
	}
	return c.ConnectionsMax
}

// envoyConnections returns how many of room connections Envoy's rate limit service gets.
func (c *serviceConfig) envoyConnections(room int) int {
	if c.EnvoyRLSListen == "" {
		return 0
	}
	return min(envoyConnectionsMax, room/4)
}

// consoleConnections returns how many of room connections browsers get. It returns 0 if the console has no address of
// its own.
func (c *serviceConfig) consoleConnections(room int) int {
	if c.ConsoleListen == "" || c.ConsoleListen == consoleOff {
		return 0
	}
	return min(consoleConnectionsMax, room/4)
}

// certificates reads the certificate of the API. It returns nil for plain HTTP.
func (c *serviceConfig) certificates(log *slog.Logger) (*transport.Certificates, error) {
	if c.TLSCertFile == "" {
		return nil, nil //nolint:nilnil // without files there are no certificates
	}
	return transport.LoadCertificates(transport.CertificateFiles{Cert: c.TLSCertFile, Key: c.TLSKeyFile, ClientCA: c.TLSClientCAFile}, log)
}

// addresses returns the URLs of the listeners. rls may be nil.
func (c *serviceConfig) addresses(api, ops, rls, pages net.Listener) addresses {
	scheme := "http://"
	if c.TLSCertFile != "" {
		scheme = "https://"
	}
	at := addresses{api: scheme + api.Addr().String(), ops: "http://" + ops.Addr().String()}
	switch {
	case pages != nil:
		at.console = scheme + pages.Addr().String() + console.Prefix
	case c.ConsoleListen == "":
		at.console = at.api + console.Prefix
	}
	if rls != nil {
		at.rls = rls.Addr().String()
	}
	return at
}

// envoyPart returns the transport.Part of Envoy's rate limit service, with at most most connections.
func envoyPart(s *envoyrls.Server, most int) *transport.Part {
	return &transport.Part{Name: "envoy_rls", Protocol: "h2", ConnectionsMax: most, Serve: s.Serve, Drain: s.Drain, Stop: s.Stop}
}
