// Package bench measures the service and its baselines in one run on one machine.
//
// # Terms
//
// A flood is load that the service refuses. An outage is the time without Redis.
//
// A variant is one kind of load on one server, for example debits of many tenants, the bare echo handler, or the
// PL/pgSQL function. A round runs every variant once, for a short slice of time. Each round begins with another
// variant, so that noise of the machine affects all variants. A ratio is computed within a round. The result is the
// median of the ratios of all rounds.
//
// # What runs where
//
// The service and the baseline's HTTP server are separate processes. If they shared a garbage collector and a
// scheduler with the load generator, the result would be wrong. The benchmark program's own binary serves the
// baseline. The load generator shares the cores with each server in the same way. PostgreSQL and Redis are private
// and empty at first. A commit of PostgreSQL waits for the disk.
//
// # Invariants
//
//  1. Every variant gets the same connections, the same duration and the same client.
//  2. At the end the journal contains every answered debit, or the run fails.
//  3. An answer other than 200 counts as an error, not as throughput. A refused part of a batch also counts as an
//     error.
//  4. The latency at a fixed rate counts from the time when a request was due, not from when it was sent.
//
// # Clock, concurrency, failure
//
// All times are monotonic. Run ends every goroutine and process that it has started before it returns. If its context
// ends, Run ends early. A failed variant fails the run.
package bench
