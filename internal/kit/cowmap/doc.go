// Package cowmap has copy-on-write maps and counts, for data that is often read and seldom changed. It also has
// functions that merge and compare sorted lists.
//
// Terms. A version is a Map that no longer changes. A part is a piece of a version: it has the entries whose keys
// hash to its index.
//
// Invariants. A version never changes. A fork shares all unchanged parts with the version from which it was forked.
// So the change of one entry copies one part and the list of parts, but not all entries.
//
// Clock. None.
//
// Concurrency. Any number of goroutines may read and fork a version. Only the goroutine that creates a Map may change
// it.
//
// Failure. None.
package cowmap
