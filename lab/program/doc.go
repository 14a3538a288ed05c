// Package program builds the quotasvc binary for the end-to-end tests. It also runs the binary as a separate process
// for the benchmark and drill programs. The product does not contain this package.
//
// # Terms
//
// A process is a started binary. It prints the addresses that it listens on as lines of standard output.
//
// # Invariants
//
//  1. Stop and Kill end a process. On Linux it also ends when the process that has started it ends.
//  2. The standard output of a process is always read, so a process never waits for a reader.
//
// # Clock, concurrency, failure
//
// The package uses no clock. The methods of a process may be called from any goroutine, except Address, which one
// goroutine calls at a time. Each process has one goroutine, which is locked to its operating-system thread and ends
// with the process.
package program
