// Command clientgen generates from the contract (internal/httpapi/reference/openapi.yaml) one method of the Go client
// for each operation. oapi-codegen generates the types. clientgen also writes docs/sdks.md, the table of the SDKs'
// features, from their features.json.
//
// # Terms
//
//   - operation: a method of a path in the contract. Its operationId names the Go method.
//   - key: the operation takes an Idempotency-Key.
//   - safe: the operation may be sent twice without an Idempotency-Key, and takes effect once.
//
// # Invariants
//
//  1. The same contract gives the same bytes. `make verify-generated` fails if a file is out of date.
//  2. A parameter of a type that the generator does not know is an error, not a method without it.
//
// # Clock, concurrency, failure
//
// The program uses no clock and no goroutines. If the generation fails, the program ends and writes no file.
package main

//go:generate go run github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen@v2.8.2 -config oapi-codegen.yaml ../../httpapi/reference/openapi.yaml
//go:generate go run . ../../..
