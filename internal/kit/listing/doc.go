// Package listing divides lists of objects with ids into pages.
//
// # Terms
//
//   - page: a bounded number of objects, in order of their ids.
//   - cursor: a text that contains the last id of a page. The next page begins after this id, even if objects were
//     added or removed meanwhile.
//
// # Invariants
//
// If a listing is read to its end, every object that existed during the whole time is in it exactly once.
//
// # Clock, concurrency and failure
//
// There is no clock and no shared state. A client may send a Query that is not valid: Query.After returns the error.
package listing
