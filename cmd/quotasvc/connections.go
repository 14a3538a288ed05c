package main

import (
	"log/slog"
	"net"
	"syscall"
	"time"

	"github.com/quotasvc/quotasvc/internal/httpapi/envoyrls"
	"github.com/quotasvc/quotasvc/internal/pages/console"
	"github.com/quotasvc/quotasvc/internal/serve/transport"
)

const (
	// filesReserved is the number of file descriptors that client connections must leave free. Operators need 64,
	// each node of Redis up to 16, and PostgreSQL needs 27 in addition to the readers and lanes. The rest is for
	// listeners, files and the runtime.
	filesReserved = 128

	// envoyConnectionsMax is the maximum number of connections from Envoy proxies. Each worker of a proxy has one
	// connection.
	envoyConnectionsMax = 512

	// envoyKeyWithin is how long a connection of Envoy's may stay without a right key. Envoy connects when it has a
	// request, which it then sends at once.
	envoyKeyWithin = 5 * time.Second

	// consoleConnectionsMax is the maximum number of connections from browsers. Each browser opens six connections.
	consoleConnectionsMax = 512

	// lanesReserved is the minimum number of file descriptors for the ledger's lanes. If no number of lanes is
	// configured, the ledger has at most this number (on Citus).
	lanesReserved = 32

	// connectionsDefaultMax is the maximum number of client connections if no number is configured. A connection
	// needs about 20 kB of memory.
	connectionsDefaultMax = 20_000
)

// connectionsMax returns the maximum number of connections to the API. All client connections together get at least
// half of the limit of open files, even if this limit is low.
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
		log.Warn("QUOTASVC_CONNECTIONS_MAX leaves too few open files for operators, PostgreSQL and Redis: "+
			"raise the limit of open files (ulimit -n)",
			"connections_max", c.ConnectionsMax, "open_files", limit, "fits", room)
	}
	return c.ConnectionsMax
}

// envoyConnections returns the maximum number of connections to Envoy's rate limit service. room is the number of all
// client connections.
func (c *serviceConfig) envoyConnections(room int) int {
	if c.EnvoyRLSListen == "" {
		return 0
	}
	return min(envoyConnectionsMax, room/4)
}

// consoleConnections returns the maximum number of connections to the console. It returns 0 if the console has no
// address of its own. room is the number of all connections that are left for the API and the console.
func (c *serviceConfig) consoleConnections(room int) int {
	if c.ConsoleListen == "" || c.ConsoleListen == consoleOff {
		return 0
	}
	return min(consoleConnectionsMax, room/4)
}

// certificates reads the TLS certificate of the API. It returns nil if the API uses plain HTTP, and a *configError if
// a file cannot be used.
func (c *serviceConfig) certificates(log *slog.Logger) (*transport.Certificates, error) {
	if c.TLSCertFile == "" {
		return nil, nil //nolint:nilnil // without files there are no certificates
	}
	files := transport.CertificateFiles{Cert: c.TLSCertFile, Key: c.TLSKeyFile, ClientCA: c.TLSClientCAFile}
	loaded, err := transport.LoadCertificates(files, log)
	var check checker
	check.require(err == nil, settingName("tls-cert-file"), "%v", err)
	return loaded, check.err()
}

// addresses returns the URLs of the listeners. rls is nil if the rate limit service is off.
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

// envoyPart returns Envoy's rate limit service as a part of the transport. most is the maximum number of its
// connections.
func envoyPart(s *envoyrls.Server, most int) *transport.Part {
	return &transport.Part{
		Name: "envoy_rls", Protocol: "h2", ConnectionsMax: most, KeyWithin: envoyKeyWithin,
		Serve: s.Serve, Drain: s.Drain, Stop: s.Stop,
	}
}
