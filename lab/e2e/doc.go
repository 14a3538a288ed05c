// Package e2e holds the end-to-end tests: they run the built quotasvc as processes with real servers, and use it as
// callers and operators do. It has no other code.
//
// # Terms
//
// The program is quotasvc, built from this source once for all tests of a run. A process is a running program. An
// instance is a process of `quotasvc serve`, with a client of its API. Backends are the PostgreSQL and the Redis that
// instances share.
//
// # Invariants
//
//  1. A test gives a process all its settings: a process gets no variable QUOTASVC_... of the tests' own environment.
//  2. A process ends with its test at the latest. If the test fails, the log of the process is shown.
//  3. No test uses code of the program. A property that only code can show is tested in the package of that code.
//
// # Clock, concurrency, failure
//
// Tests run in parallel, each with its own database and its own Redis keys. They wait for events, and do not sleep
// for a fixed time. If the program cannot be built, each test fails with the output of the compiler.
package e2e
