// Package address says which addresses count as one caller.
//
// # Terms
//
// A network is what shares a bucket: a prefix of an address. An embedded address is the IPv4 address in an IPv6 address of NAT64, or in an
// IPv4-compatible one; it counts instead of the address around it.
//
// # Invariants
//
//  1. Addresses of one network have one name, and others have another one: lengths that are not the usual ones are part of the name.
//
// # Clock, concurrency, failure
//
// No clock, no state. Lengths beyond an address count the address alone.
package address
