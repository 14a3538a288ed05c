// Package tuning has the settings of PostgreSQL that the benchmark program compares, and their results.
//
// # Terms
//
// A setting is a way to run PostgreSQL. The base of a group is the setting with which the other settings are
// compared, in the same round.
//
// # Invariants
//
//  1. A ratio compares values of one round. The result is the median of the rounds, with the lowest and the highest.
//  2. A setting that this machine cannot run is left out, and listed with the reason.
//
// # Clock, concurrency, failure
//
// The package uses no clock. Values belong to one goroutine. A file that cannot be written is an error.
package tuning
