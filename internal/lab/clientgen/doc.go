// Command clientgen generates the methods of the Go client: one method for each operation of the contract
// (internal/httpapi/reference/openapi.yaml). oapi-codegen generates the types. clientgen also writes docs/sdks.md,
// the table of the SDKs' features, from the files features.json of the SDKs.
//
// # Terms
//
//   - operation: a method of a path in the contract. Its operationId names the Go method.
//   - key: the operation takes an Idempotency-Key.
//   - safe: the operation may be sent twice without an Idempotency-Key. It takes effect only once.
//
// # Invariants
//
//  1. The same contract gives the same bytes. `make verify-generated` fails if a file is out of date.
//  2. If the generator does not know the type of a parameter, it fails. It never omits the parameter.
//
// # Clock, concurrency, failure
//
// The program uses no clock and no goroutines. If it cannot generate a text, it writes no file and ends with an
// error.
package main

//go:generate go run github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen@v2.8.2 -config oapi-codegen.yaml ../../httpapi/reference/openapi.yaml
//go:generate go run . ../../..
