// Package recent keeps the values that were used last, in little memory.
//
// # Invariants
//
//  1. A Map has at most as many entries as it was made for. A further one takes the place of the least recently used.
//  2. An entry takes its key, its value and 12 bytes, rounded up to 8, plus 4 to 8 bytes of a table.
//
// # Concurrency
//
// A Map is for one goroutine at a time: its owner has a lock. A Cache is a Map with a lock of its own.
package recent
