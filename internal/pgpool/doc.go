// Package pgpool measures pools of connections to PostgreSQL, and changes their password while they are in use.
//
// # Terms
//
// A pool has a name, such as readers or reports: the label pool of its metrics. waits counts the times that nobody's connection was free.
//
// # Invariants
//
// Reading the metrics costs no connection. A changed login holds for connections that are opened later.
//
// # Clock, concurrency, failure
//
// None, any, and none: the figures are the pool's own counters.
package pgpool
