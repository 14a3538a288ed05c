// Package program builds the quotasvc binary for the end-to-end tests, and runs it as a process of its own for the
// programs that measure and drill it. The product does not contain it.
//
// # Terms
//
// A process is a started binary. It prints the addresses that it listens on as lines of standard output.
//
// # Invariants
//
//  1. A process ends with its Stop or Kill, and on Linux with the process that has started it.
//  2. Its standard output is always read, so it never waits for a reader.
//
// # Clock, concurrency, failure
//
// No clock. The methods of a process may be called from any goroutine, except Address, which one goroutine calls at a time. Each
// process has one goroutine, locked to its operating-system thread, which ends with it.
package program
