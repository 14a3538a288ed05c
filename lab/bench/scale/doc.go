// Package scale computes the resources that a rate of debits needs. It is a load model, not a measurement.
//
// # Terms
//
// A cost is CPU time or bytes for one debit. Costs are measured, and docs/scaling.md names the run of each cost. A
// machine is a kind of computer with a disk. The numbers of a machine are assumptions. A node is one PostgreSQL
// server: the only one, or a worker of Citus. A resource is something of which a node has a limited amount, for
// example CPU time. The resource for which the most nodes are needed decides the number of nodes.
//
// # Formulas
//
//	µs of PostgreSQL per debit   Row + Transaction / b, where b is the number of debits in a transaction
//	b                            1 + lane rate * time of a transaction: debits that arrive during the transaction before
//	time of a transaction        Trips * RoundTrip + Flush + b * Row
//	lanes                        as many as needed for each to work at most laneBusy of its time
//	nodes                        max over resources of (use / amount per node), rounded up
//
// b depends on itself, so it is computed by iteration. It is at most BatchMax. Row is the part of a transaction's
// time that grows with the number of its debits, because each lane has one session.
//
// # Invariants
//
//  1. More debits never need fewer nodes, cores or bytes.
//  2. A plan names the resource that decided the number of its nodes.
//
// # Clock, concurrency, failure
//
// The package uses no clock and no I/O. Values do not change after their creation. If an input is out of its bounds,
// the error names it.
package scale
