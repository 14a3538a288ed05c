// Package address defines which addresses count as one caller.
//
// # Terms
//
// A network is a prefix of an address; its addresses share a bucket. An embedded address is the IPv4 address inside a
// NAT64 or IPv4-compatible IPv6 address; it is used instead of the IPv6 address.
//
// # Invariants
//
//  1. All addresses of a network have the same name, and different networks have different names. So a length that is
//     not the default is part of the name.
//
// # Clock, concurrency, failure
//
// The package has no clock and no state. If a prefix length is longer than the address, the network is this one
// address.
package address
