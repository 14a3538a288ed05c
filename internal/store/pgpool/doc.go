// Package pgpool measures pools of connections to PostgreSQL, applies settings to their connections, and changes the
// login of new connections. It also checks that each connection has its own session. Connections share sessions if
// they go through a pooler in transaction mode.
//
// # Terms
//
// A pool has a name, such as readers or reports. The name is the value of the label "pool" of the pool's metrics. The
// metric of waits counts the callers that waited because no connection was free. A session is the state that
// PostgreSQL keeps for a connection: settings, prepared statements, advisory locks and subscriptions.
//
// # Invariants
//
// Reading the metrics uses no connection. A changed login applies to connections that are opened later.
//
// # Clock, concurrency, failure
//
// The package uses no clock. The metrics are the pool's own counters. Functions may be called from any goroutine. If
// the settings of a connection cannot be applied, the connection is not used.
package pgpool
