// Package tuning contains the settings of PostgreSQL that the benchmark program compares, and their results.
//
// # Terms
//
// A setting is a way to run PostgreSQL. The base of a group is the setting with which the other settings are
// compared, in the same round.
//
// # Invariants
//
//  1. A ratio compares two values of one round. The result is the median of the rounds' ratios, with the lowest and
//     the highest ratio.
//  2. A setting that this machine cannot run is not measured, and listed with the reason.
//
// # Clock, concurrency, failure
//
// The package uses no clock. Only one goroutine may use a value of its types. A file that cannot be written is an
// error.
package tuning
