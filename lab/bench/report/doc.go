// Package report judges, prints, draws and compares the results of the benchmark program.
//
// # Terms
//
// A variant is one kind of load on one server, measured in rounds. A target is a bound that the service should keep;
// it is met or missed. A ratio is information without a bound. A record is a small committed file with the results of
// an earlier run.
//
// # Invariants
//
//  1. The cost of a unit is the CPU time of the service, PostgreSQL and Redis together. It is divided by the CPU
//     time of the bare echo handler in the same round; the result is the median of the rounds.
//  2. A missed target is never drawn or printed like a target that was met.
//  3. A value that a run has not measured has no target and no bar.
//
// # Clock, concurrency, failure
//
// The package uses no clock. Only one goroutine may use a value of its types. A record that cannot be read fails the
// run before it starts.
package report
