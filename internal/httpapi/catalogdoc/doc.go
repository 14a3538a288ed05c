// Package catalogdoc turns the catalogue into one JSON document and back: the bodies of /v1/catalog, and a catalogue file as such a body.
//
// # Terms
//
//   - document: the sections of catalog.yaml as JSON.
//   - diff: what a document changes, as in package catalog/diff.
//
// # Invariants
//
//  1. What Export writes, Request reads, and applying it changes nothing.
//  2. A document is read by the reader of files, so that a file and a body have the same shapes, bounds and sentences.
//
// # Clock, concurrency, failure
//
// No clock and no I/O. What is wrong with a document is a *body.Error with all faults.
package catalogdoc
