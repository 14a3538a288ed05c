// Package body reads JSON objects strictly: request bodies, and the objects of a catalogue file.
//
// # Terms
//
//   - document: the text of one JSON object while it is read.
//   - fault: a field and the sentence that says what it must be.
//   - path: where a value is in its document, as in items[0].amount; "body" is the document itself.
//   - member: a field of an object, with the function that reads it.
//   - given: the paths of all fields that a document has, with any value.
//
// # Two ways to read
//
//   - Decode reads an object by a table of members. The table has the bounds, and only the result is allocated. It is
//     for frequent requests.
//   - JSON reads an object by the json tags of a struct, and calls the struct's Check for the bounds. It is for
//     administration and for catalogue files, so that both use the same types and the same bounds.
//
// # Invariants
//
//  1. These are faults: unknown fields, duplicate fields, missing required fields, a null that is not allowed, and
//     text after the object.
//  2. All faults of a document are reported at once, each under its path. Reading stops early only at text that is
//     not JSON.
//  3. At most 32 faults are reported, and a path has at most 160 bytes: a hostile document cannot make the answer larger than
//     itself.
//
// # Clock, concurrency, failure
//
// The package reads no clock and does no I/O. A Document serves one goroutine at a time. If a document has faults,
// the error is an *Error.
package body
