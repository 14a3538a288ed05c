// Package body reads JSON objects strictly: request bodies, and the objects of a catalogue file.
//
// # Terms
//
//   - document: the text of one JSON object while it is read.
//   - fault: a field that is wrong, with a sentence that says what it must be.
//   - path: the position of a value in its document, such as items[0].amount; "body" is the document itself.
//   - member: a field of an object in a table of fields, with the function that reads it.
//   - given: the paths of all fields that occur in a document, with any value.
//
// # Two ways to read
//
//   - Decode reads an object by a table of members, which check the bounds. It allocates only the result. It is for
//     frequent requests.
//   - JSON reads an object by the json tags of a struct, and calls the struct's Check for the bounds. It is for
//     requests of administrators and for catalogue files, so that both use the same types and the same bounds.
//
// # Invariants
//
//  1. These are faults: unknown fields, duplicate fields, missing required fields, a null that is not allowed, and
//     text after the object.
//  2. All faults of a document are reported at once, each under its path. Reading stops early only at a duplicate
//     field or at text that is not JSON.
//  3. At most 32 faults are reported, and a path has at most 160 bytes. So the answer to a hostile document cannot be
//     much larger than the document.
//
// # Clock, concurrency, failure
//
// The package reads no clock and does no I/O. A Document is for one goroutine at a time. If a document has faults,
// the error is an *Error.
package body
