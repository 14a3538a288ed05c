// Package growth judges, prints and draws how the cost of the service depends on the amount of stored data.
//
// # Terms
//
// A step measures one dimension (tenants, journal, instances, partitions, catalogue), the layout of the table
// balances, or a month's end. A size is one value of a dimension. Most sizes have their own database and processes.
// Some sizes use the database and processes of another size, with other tenants or settings. All sizes of a step get
// the same load in the same rounds. A load consists of debits or checks. It has a closed loop, for throughput and CPU
// time, and a fixed rate, for latency.
//
// # Invariants
//
//  1. A ratio is computed within a round, against the first size of the step; the result is the median of the rounds.
//  2. A missed target is never drawn or printed like a target that was met. A size that was left out is listed with
//     the reason.
//  3. A step is stored with its settings. A result with other settings does not count as a result of the step.
//
// # Clock, concurrency, failure
//
// The package uses no clock. Only one goroutine may use a value of its types. A stored result that cannot be read
// fails the run before it starts.
package growth
