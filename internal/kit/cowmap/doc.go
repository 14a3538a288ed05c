// Package cowmap has copy-on-write maps and counts, for data that is read often and changed seldom, and functions that compare two versions.
//
// Terms. A version is a Map that no longer changes. A part is a piece of a version: the entries whose keys hash to
// the same index.
//
// Invariants. A version never changes. A fork shares all unchanged parts with its origin: a change of one entry
// copies one part and the list of parts, not all entries.
//
// Clock. None.
//
// Concurrency. Any number of goroutines may read and fork a version. Only the goroutine that creates a version may change it.
//
// Failure. None.
package cowmap
