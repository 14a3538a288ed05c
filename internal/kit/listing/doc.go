// Package listing divides listings of objects with ids into pages.
//
// # Terms
//
//   - page: up to a number of objects, in order of their ids.
//   - cursor: names the last id of a page. The next page begins after it, whatever was added or removed meanwhile.
//
// # Invariants
//
// A listing read to its end has every object that existed all the time, once.
//
// # Clock, concurrency and failure
//
// There is no clock, and nothing is shared. A Query of a client may be wrong: Query.After says how.
package listing
