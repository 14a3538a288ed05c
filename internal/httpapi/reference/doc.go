// Package reference serves what people and tools read about the API: the contract in YAML and in JSON, and a page that shows it.
//
// # Terms
//
//   - document: a constant text with its media type, its gzip form and an ETag of each.
//   - viewer: Redoc, the script that draws the page from the contract. It is part of the program, so that the page needs no other host.
//
// # The viewer
//
// redoc.standalone.js.gz is bundles/redoc.standalone.js of the npm package redoc 2.5.4 (MIT, redoc.LICENSE.txt; redoc.notices.txt names what is
// inside), compressed by gzip -9 -n. A test compares the SHA-256 of the script. docs/decisions/reference.md says why this one.
//
// # Invariants
//
//  1. A document never changes while the program runs. It is made when it is first asked for, and once.
//  2. The page loads nothing from other hosts: its Content-Security-Policy refuses it.
//
// # Clock, concurrency, failure
//
// No clock. Documents may be served by any number of requests at once. Making one fails only if the program was built wrongly; a test makes all.
package reference
