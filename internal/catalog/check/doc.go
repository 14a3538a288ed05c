// Package check collects the faults of an object of the catalogue, each with the path of its field, so that a client gets all of them at once.
//
// A Checker is for one goroutine. It keeps no clock, and nothing of it fails: what is wrong is in Faults.
package check
