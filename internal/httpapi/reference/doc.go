// Package reference serves the reference of the API: the contract in YAML and in JSON, and an HTML page that shows
// the contract.
//
// # Terms
//
//   - document: a constant text, with its media type and its gzip form. The plain form and the gzip form each have an
//     ETag.
//   - viewer: Redoc, the script that shows the contract on the page. It is part of the program, so that the page
//     needs no file from another host.
//
// # The viewer
//
// redoc.standalone.js.gz is bundles/redoc.standalone.js of the npm package redoc 2.5.4 (MIT, redoc.LICENSE.txt),
// compressed by gzip -9 -n. redoc.notices.txt names the packages in the script. A test compares the script's SHA-256
// with the SHA-256 of the published script. docs/decisions/reference.md explains the choice of Redoc.
//
// # Invariants
//
//  1. A document does not change while the program runs. It is created at the first request for it.
//  2. The page loads no files from other hosts. Its Content-Security-Policy also forbids this.
//
// # Clock, concurrency, failure
//
// The package has no clock. Any number of requests may read a document at the same time. Creating a document fails
// only if the program was built wrongly. A test creates all documents.
package reference
