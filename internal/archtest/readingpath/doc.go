// Command readingpath measures what a reader has to follow to understand one request: `make reading-path`.
//
// It builds the service with a coverage counter for each block, serves on a real PostgreSQL and Redis, and warms up. It records
// the counters of three debits (POST /v1/debits, one item) and three checks (POST /v1/check, one limit and one balance). Then it
// walks the functions that ran in the order in which they call each other, with the types of go/types.
//
// # Terms
//
//   - A function runs if one of its blocks is counted within 300 ms of each of the three requests: what the background does
//     now and then is beside one of them only. Functions that are counted in an idle window too (heartbeats) are left out. A function literal belongs to the function that it is written in.
//   - Files and packages are those of the functions that run. Only this module's product packages count; generated files are
//     in them.
//   - The walk begins at the HTTP middleware, httpapi's serve. It goes through a body's calls in the order of the text: each
//     call of a function that runs, whatever branch it is in. A loop's body is walked once. A function that is called from
//     two places is walked twice, one that calls itself once.
//   - A call through an interface goes to the implementations that run. A call through a function value goes to the
//     functions of that signature that run and are used as values. A literal is walked where it is written, unless its
//     function does not run itself: then it was made earlier and is walked where it is called. Fields, and variables that
//     such a literal captures, keep functions of other type parameters. A lane's goroutine is walked
//     where the caller waits for its answer.
//   - A change is a step of the walk, into a function or back, from one file to another. A return is a change into a file
//     that the walk was in before.
//   - A type is met if it is a named type of this module and its name is written in a function that runs, receiver and
//     parameters included.
//   - Functions that run and are not reached are listed as not walked. They run beside the request, such as publishing a
//     balance, or are called by a library.
//
// # How it works
//
// The recorder (testdata/recorder.go) is added to a copy of the main package and starts the product's own parts, so the
// product has no code for this. Go's coverage counters can be cleared and written only in a program built by `go build
// -cover`, not in a test.
package main
