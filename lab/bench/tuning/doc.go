// Package tuning has the settings of PostgreSQL that the benchmark program compares, and what each did.
//
// # Terms
//
// A setting is a way to run PostgreSQL. The base of a group is the setting that its others are compared with, in the same round.
//
// # Invariants
//
//  1. A ratio compares values of one round. The result is the median of the rounds, with the lowest and the highest.
//  2. A setting that this machine cannot run is left out by name, with the reason.
//
// # Clock, concurrency, failure
//
// No clock. Values belong to one goroutine. Files that cannot be written fail.
package tuning
