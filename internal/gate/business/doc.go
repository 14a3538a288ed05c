// Package business counts what a product's owner asks for: who is refused, by plan, and what is used, by meter.
//
// # Invariants
//
//  1. Labels are names of the catalogue, never what a client sends: at most labelsMax plans and meters, and one value for all others.
//  2. A name keeps its label value as long as it exists. The series of a deleted name are removed.
//
// # Clock, concurrency, failure
//
// No clock. Methods are safe for concurrent use and cannot fail.
package business
