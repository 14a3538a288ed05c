// Package metric creates the Prometheus metrics of the service.
//
// Terms. The functions have the names of the metrics' types in package prometheus. A metric is created and registered
// in one step. With a nil registerer it is only created.
//
// Invariants. None.
//
// Clock. None.
//
// Concurrency. All functions may be called from any goroutine.
//
// Failure. A function panics if the registerer already has a metric of this name, which is a programming error.
package metric
