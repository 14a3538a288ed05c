// Package block holds blocks: tenants, subjects and addresses that are refused, or exempt from limits, until an instant.
//
// # Terms
//
//   - kind and value: whom a block is about. A subject is one of a tenant; an address is a prefix of all its bits.
//   - normal form: the one spelling of an address or prefix under which a block is stored and found.
//   - index: all blocks in force at one moment, which requests are compared with.
//
// # Invariants
//
//  1. Of several prefixes that contain an address, the longest one in force counts.
//  2. A block that refuses counts before one that exempts.
//  3. A block that has expired has no effect, whether or not it is still stored.
//
// # Clock
//
// The caller passes the instant: this package has no clock.
//
// # Concurrency and failure
//
// An Index is not changed after it was made, and may be shared. Nothing here does I/O or fails, but for faults of fields.
package block
