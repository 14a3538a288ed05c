// Package scale computes what a rate of debits needs: a load model, not a measurement.
//
// # Terms
//
// A cost is CPU time or bytes for one debit; costs are measured, and docs/scaling.md names the run of each. A machine is a kind of computer
// with a disk; its figures are assumptions. A node is one PostgreSQL server: the only one, or a worker of Citus. A resource is what a node
// has a limited amount of. The resource that needs the most nodes saturates first.
//
// # Formulas
//
//	µs of PostgreSQL per debit   Row + Transaction / b, where b is the number of debits in a transaction
//	b                            1 + lane rate * time of a transaction: what arrives while the one before is under way
//	time of a transaction        Trips * RoundTrip + Flush + b * Row
//	lanes                        so many that each works laneBusy of its time at most
//	nodes                        max over resources of (use / what a node has of it), rounded up
//
// b is solved by iteration; it is at most BatchMax. Row is the part of a transaction's time that grows with its debits, because one
// session works for a lane.
//
// # Invariants
//
//  1. More debits never need fewer nodes, cores or bytes.
//  2. A plan names the resource that decided the number of its nodes.
//
// # Clock, concurrency, failure
//
// No clock, no I/O. Values are not changed after they were made. Inputs that are not positive are refused by name.
package scale
