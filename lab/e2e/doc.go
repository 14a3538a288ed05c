// Package e2e contains the end-to-end tests. They run the built quotasvc as processes with real servers, and use it
// as callers and operators do. The package contains only tests.
//
// # Terms
//
// The program is quotasvc, built from this source once for all tests of a run. A process is a running program. An
// instance is a process of `quotasvc serve`, with a client of its API. Backends are the PostgreSQL and the Redis that
// instances share.
//
// # Invariants
//
//  1. A test sets all settings of a process. A process gets no variable QUOTASVC_... from the environment of the
//     tests.
//  2. A process ends with its test at the latest. If the test fails, its output contains the log of the process.
//  3. No test uses code of the program. If only a call of a function can show a property, the test is in the package
//     of that function.
//
// # Clock, concurrency, failure
//
// Tests run in parallel, each with its own database and its own Redis keys. They wait for events, and do not sleep
// for a fixed time. If the program cannot be built, each test fails with the output of the compiler.
package e2e
