// Package block holds blocks. A block refuses a tenant, a subject or addresses, or exempts them from limits, until an
// instant.
//
// # Terms
//
//   - kind and value: the tenant, subject or addresses that a block refuses or exempts. A subject belongs to a
//     tenant. An address is stored as a prefix with the full number of bits.
//   - normal form: the one spelling of an address or prefix under which a block is stored and found.
//   - index: all blocks in force at one moment. Requests are looked up in it.
//
// # Invariants
//
//  1. If several prefixes contain an address, the longest prefix in force decides.
//  2. A block that refuses takes precedence over a block that exempts.
//  3. A block that has expired has no effect, although it may still be stored.
//
// # Clock
//
// The caller passes the present instant: this package has no clock.
//
// # Concurrency and failure
//
// An Index does not change after its creation, and may be shared. The package does no I/O. Its only errors are faults
// of fields.
package block
