// Package listing divides listings of objects with ids into pages.
//
// # Terms
//
//   - page: a bounded number of objects, in order of their ids.
//   - cursor: a text that names the last id of a page. The next page begins after this id, even if objects were added
//     or removed meanwhile.
//
// # Invariants
//
// A listing that is read to its end has each object that existed all the time exactly once.
//
// # Clock, concurrency and failure
//
// There is no clock and no shared state. A client may send a Query that is not valid: Query.After returns the error.
package listing
