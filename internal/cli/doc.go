// Package cli has the commands that call the API of a running service. They are for people at a terminal and for
// scripts.
//
// # Terms
//
//   - command: a struct with a Run method. Tags of its fields define its flags and arguments.
//   - connection: the address of the service and a key, from flags, from a context or from the environment.
//   - context: a named address with its key in the configuration file.
//   - page: a manual page of the program.
//
// # Invariants
//
//  1. With --json, a command prints only the answer of the API to standard output: an indented object, or one item of
//     a list per line.
//  2. The exit status is 0 if the command succeeded, and 1 if it failed or was refused. It is 2 if the command line or
//     the configuration is wrong. It is 3 if a dry run with --exit-code found changes, and 130 after an interrupt.
//  3. Colours are used only on terminals, and not if NO_COLOR is set.
//  4. A key is never printed.
//
// # Clock, concurrency, failure
//
// Times are printed in UTC. A command runs in one goroutine. Each call has the time limit of the client, 30 s. If an
// answer is lost, the call is retried with the same idempotency key. An interrupt ends a command.
package cli
