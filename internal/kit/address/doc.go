// Package address defines which IP addresses count as one caller.
//
// # Terms
//
// A network is a prefix of an address. The addresses of a network share a bucket. An embedded address is the IPv4
// address inside a NAT64 or IPv4-compatible IPv6 address. It is used instead of the IPv6 address.
//
// # Invariants
//
//  1. All addresses of a network have the same name, and different networks have different names. So a prefix length
//     that is not the default is part of the name.
//
// # Clock, concurrency, failure
//
// The package has no clock and no state. If a prefix length is larger than the length of the address, the network
// consists of only this address.
package address
