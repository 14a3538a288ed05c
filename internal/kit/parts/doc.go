// Package parts has maps and counts in versions, for data that many read and few change, and what finds the differences of two versions.
//
// Terms. A version is a Map that nobody changes any more. A part is a piece of a version: the entries whose keys have the same place.
//
// Invariants. A version never changes. Two versions share the parts that are equal, so a version with one other entry costs the copy of one part and
// of the list of parts, not of all entries.
//
// Clock. None.
//
// Concurrency. A version may be read, and forked, by many goroutines. Only the goroutine that makes a version may change it.
//
// Failure. None.
package parts
