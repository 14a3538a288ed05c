// Package check collects the faults of an object of the catalogue (a meter, plan, limit, tenant or block), each with
// the path of its field. So a client gets all faults at once.
//
// Only one goroutine may use a Checker. A Checker uses no clock and returns no errors: all problems are in Faults.
package check
