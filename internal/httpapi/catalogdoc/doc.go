// Package catalogdoc converts the catalogue into one JSON document, and such a document into a catalogue. These
// documents are the bodies of /v1/catalog. The package also converts a catalogue file (YAML) into such a body.
//
// # Terms
//
//   - document: the sections of catalog.yaml as JSON.
//   - diff: the changes that a document causes, as in package catalog/diff.
//
// # Invariants
//
//  1. Request reads the documents that Export writes. Applying an exported document changes nothing.
//  2. The reader of catalogue files also reads documents, so files and bodies have the same structure, bounds and
//     error texts.
//
// # Clock, concurrency, failure
//
// The package has no clock and no I/O. If a document is invalid, the error is a *body.Error with all faults.
package catalogdoc
