// Package wire is the REST contract: openapi.yaml, and the Go types of answers that are generated from it.
//
// # Terms
//
//   - contract: openapi.yaml. The service serves it at /v1/openapi.yaml (package reference).
//   - overlay: overlay.yaml, what the generator must know about Go and a reader of the contract need not. The contract names no
//     Go types.
//
// # Invariants
//
//  1. types.gen.go is what `make generate` writes from the contract and the overlay; `make verify-generated` compares.
//  2. Only types that package httpapi uses are generated. The others are listed in oapi-codegen.yaml; a test of package httpapi
//     finds what is missing in that list.
//  3. The package imports nothing of this module.
//
// # Clock, concurrency, failure
//
// The package has types and one constant document. It does nothing.
package wire
