// Package cli has the commands that ask a running service over its API: for people at a terminal, and for scripts.
//
// # Terms
//
//   - command: a struct with its flags and arguments as tags, and a Run method.
//   - connection: the address and the key of the service, from flags, a context or the environment.
//   - context: a named address with its key, in the configuration file.
//   - page: a manual page.
//
// # Invariants
//
//  1. With --json a command prints the answer of the API, an object indented or one item a line, and nothing else to standard output.
//  2. The status is 0 if it is done, 1 if it failed or was refused, 2 if the command line is wrong.
//  3. Colours are for terminals alone, and not with NO_COLOR.
//  4. A key is never printed.
//
// # Clock, concurrency, failure
//
// Times are printed in UTC. A command is one goroutine. Each call has the deadline of the client, 30 s; a lost answer is asked for again with the
// same key, and an interrupt ends a command.
package cli
