// Command clientgen writes what the Go client has from the contract (internal/httpapi/reference/openapi.yaml): the types, by oapi-codegen, and
// one method for each operation. It also writes the table of what the SDKs have, docs/sdks.md, from their features.json.
//
// # Terms
//
//   - operation: a method of a path in the contract. Its operationId names the Go method.
//   - key: the operation takes an Idempotency-Key. safe: it may be sent twice without one, and takes effect once.
//
// # Invariants
//
//  1. The same contract gives the same bytes. `make verify-generated` fails if a file is out of date.
//  2. A parameter of a type that the generator does not know is an error, not a method without it.
//
// # Clock, concurrency, failure
//
// None of the first two. An error ends the program, and no file is written.
package main

//go:generate go run github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen@v2.8.2 -config oapi-codegen.yaml ../../httpapi/reference/openapi.yaml
//go:generate go run . ../../..
