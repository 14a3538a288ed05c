// Package cowmap has copy-on-write maps and counts, for data that is read often and changed seldom, and functions that compare two versions.
//
// Terms. A version is a Map that nobody changes any more. A part is a piece of a version: the entries whose keys hash to the same place.
//
// Invariants. A version never changes. Two versions share the parts that are equal in both: a version that differs in one entry costs a
// copy of one part and of the list of parts, not a copy of all entries.
//
// Clock. None.
//
// Concurrency. Any number of goroutines may read and fork a version. Only the goroutine that creates a version may change it.
//
// Failure. None.
package cowmap
