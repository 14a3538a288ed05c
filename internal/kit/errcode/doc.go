// Package errcode has the one error type of the service: a code for programs, a sentence for people, and a cause for
// the log.
//
// # Terms
//
//   - code: a kind of failure. Its text is the code in the REST contract, and package httpapi maps it to an HTTP
//     status. A package may declare further codes of type Code.
//   - fault: a field of the request that is wrong, with a sentence about it (body.Fault).
//
// # Invariants
//
//  1. Callers decide by the code (Of), never by the text.
//  2. Fields and Detail may be shown to the caller. The cause must not be shown: it is for the log.
//
// # Clock, concurrency and failure
//
// There is no clock. An Error does not change after it was returned, so any goroutine may read it.
package errcode
