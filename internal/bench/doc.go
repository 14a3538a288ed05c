// Package bench measures the service beside its baselines, in one run on one machine.
//
// # Terms
//
// A variant is one kind of load on one server: debits of many tenants, the bare echo handler, the PL/pgSQL function and so
// on. A round runs every variant once, for a short slice of time; rounds repeat, each starting with another variant, so that
// noise of the machine hits all alike. A ratio is formed within a round; what is reported is the median of the rounds.
//
// # What runs where
//
// The service and the baseline's HTTP server are processes of their own: a garbage collector and a scheduler shared with the
// load generator would distort the result. The baseline is served by the benchmark program's own binary. The load generator shares the cores with each of them in
// the same way. PostgreSQL and Redis are private and empty at first; PostgreSQL waits for its disk.
//
// # Invariants
//
//  1. Every variant gets the same connections, the same duration and the same client.
//  2. Every debit that was answered is found in the journal at the end, or the run fails.
//  3. An answer other than 200 is counted as an error and not as throughput.
//  4. Latencies of fixed rates count from when a request was due, not from when it could be sent.
//
// # Clock, concurrency, failure
//
// Wall time, monotonic. Run owns every goroutine and process it starts and ends them before it returns. The context bounds
// it; a failed variant fails the run.
package bench
