// Package recent keeps the most recently used values in little memory.
//
// # Invariants
//
//  1. A Map has at most the number of entries that New was called with. A further entry replaces the least recently
//     used entry.
//  2. An entry takes the bytes of its key and its value plus 12, rounded up to a multiple of 8. It also takes 4 to 8
//     bytes of a hash table.
//
// # Concurrency
//
// A Map is for one goroutine at a time: its owner must lock it. A Cache is a Map with its own lock.
package recent
