// Package block holds blocks: tenants, subjects and addresses that are refused, or exempt from limits, until an
// instant.
//
// # Terms
//
//   - kind and value: what a block refuses or exempts. A subject belongs to a tenant. An address is stored as the
//     prefix of all its bits.
//   - normal form: the one spelling of an address or prefix under which a block is stored and found.
//   - index: all blocks in force at one moment, with which requests are compared.
//
// # Invariants
//
//  1. If several prefixes contain an address, the longest prefix in force counts.
//  2. A block that refuses takes precedence over a block that exempts.
//  3. A block that has expired has no effect, whether or not it is still stored.
//
// # Clock
//
// The caller passes the instant: this package has no clock.
//
// # Concurrency and failure
//
// An Index does not change after its creation, and may be shared. The package does no I/O. Its only errors are faults
// of fields.
package block
