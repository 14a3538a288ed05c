// Package reference serves the API reference for people and tools: the contract in YAML and in JSON, and a page that
// shows the contract.
//
// # Terms
//
//   - document: a constant text with its media type and its gzip form. Each form has its own ETag.
//   - viewer: Redoc, the script that renders the contract on the page. It is part of the program, so that the page
//     needs no other host.
//
// # The viewer
//
// redoc.standalone.js.gz is bundles/redoc.standalone.js of the npm package redoc 2.5.4 (MIT, redoc.LICENSE.txt),
// compressed by gzip -9 -n. redoc.notices.txt names the packages in the script. A test compares the SHA-256 of the
// script. docs/decisions/reference.md explains the choice of Redoc.
//
// # Invariants
//
//  1. A document never changes while the program runs. It is created once, at the first request for it.
//  2. The page loads nothing from other hosts: its Content-Security-Policy forbids that.
//
// # Clock, concurrency, failure
//
// No clock. Any number of requests may read a document at once. Creating a document fails only if the program was
// built wrongly; a test creates all documents.
package reference
