// Package pgpool measures pools of connections to PostgreSQL.
//
// # Terms
//
// A pool has a name, such as readers or reports: the label pool of its metrics. waits counts the times that nobody's connection was free.
//
// # Invariants
//
// Reading the metrics costs no connection.
//
// # Clock, concurrency, failure
//
// None, any, and none: the figures are the pool's own counters.
package pgpool
