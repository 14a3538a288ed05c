// Package scale computes what a rate of debits needs: a load model, not a measurement.
//
// # Terms
//
// A cost is CPU time or bytes for one debit; costs are measured, and docs/scaling.md names the run of each. A machine
// is a kind of computer with a disk; its figures are assumptions. A node is one PostgreSQL server: the only one, or a
// worker of Citus. A resource is something of which a node has a limited amount. The resource that needs the most nodes
// saturates first.
//
// # Formulas
//
//	µs of PostgreSQL per debit   Row + Transaction / b, where b is the number of debits in a transaction
//	b                            1 + lane rate * time of a transaction: debits that arrive during the transaction before
//	time of a transaction        Trips * RoundTrip + Flush + b * Row
//	lanes                        as many as needed for each to work at most laneBusy of its time
//	nodes                        max over resources of (use / amount per node), rounded up
//
// b is solved by iteration; it is at most BatchMax. Row is the part of a transaction's time that grows with its debits,
// because one session works for a lane.
//
// # Invariants
//
//  1. More debits never need fewer nodes, cores or bytes.
//  2. A plan names the resource that decided the number of its nodes.
//
// # Clock, concurrency, failure
//
// The package uses no clock and no I/O. Values do not change after their creation. If an input is not positive, the
// error names it.
package scale
