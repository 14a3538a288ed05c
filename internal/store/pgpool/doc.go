// Package pgpool measures pools of connections to PostgreSQL, applies settings to their connections, and changes
// their password while they are in use. It checks that each connection has its own session: behind a pooler in
// transaction mode it does not.
//
// # Terms
//
// A pool has a name, such as readers or reports: the label pool of its metrics. The metric waits counts how often a
// caller waited because no connection was free. A session is the state that PostgreSQL keeps for a connection:
// settings, prepared statements, advisory locks and subscriptions.
//
// # Invariants
//
// Reading the metrics uses no connection. A changed login applies to connections that are opened later.
//
// # Clock, concurrency, failure
//
// The package uses no clock: the figures are the pool's own counters. Functions may be called from any goroutine. If
// the settings of a connection cannot be applied, the connection is not used.
package pgpool
