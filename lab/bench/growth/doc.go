// Package growth judges, prints and draws how the cost of the service depends on the amount of stored data.
//
// # Terms
//
// A step measures one dimension: tenants, journal, instances, partitions, catalogue; or the layout of the table
// balances; or a month's end. A size is one value of a dimension. Most sizes have their own database and processes;
// some sizes use those of another size, with other tenants or settings. All sizes of a step get the same load in the
// same rounds. A load is debits or checks: a closed loop for throughput and CPU time, and a fixed rate for latency.
//
// # Invariants
//
//  1. A ratio is computed within a round, against the first size of the step; the result is the median of the rounds.
//  2. A target that was missed is never drawn or printed like one that was met. A size that was left out is listed with
//     the reason.
//  3. A step is stored with its settings. A result of other settings does not count as this step's.
//
// # Clock, concurrency, failure
//
// The package uses no clock. Values belong to one goroutine. A stored result that cannot be read fails the run before
// it starts.
package growth
