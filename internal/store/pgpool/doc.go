// Package pgpool measures pools of connections to PostgreSQL, gives their connections settings, and changes their password while they are in use. It
// finds out whether connections have sessions of their own, which a pooler in transaction mode does not give them.
//
// # Terms
//
// A pool has a name, such as readers or reports: the label pool of its metrics. waits counts the times that nobody's connection was free. A session is
// what PostgreSQL keeps for a connection: settings, prepared statements, advisory locks and subscriptions.
//
// # Invariants
//
// Reading the metrics costs no connection. A changed login holds for connections that are opened later.
//
// # Clock, concurrency, failure
//
// None, any, and none: the figures are the pool's own counters. A connection whose settings cannot be made is not used.
package pgpool
