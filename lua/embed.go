// Package lua embeds the scripts that run inside Redis. One file is one atomic operation. Its header documents KEYS,
// ARGV with units, the reply and the invariants. A script replies with an array of integers, or with one string that
// packs them.
//
// The package has only the sources of the scripts. redisstore.Script sends a script once for each call, and a second
// time only after the reply NOSCRIPT.
package lua

import _ "embed"

// Limits decides requests. Each request is charged on all its buckets or on none.
//
//go:embed limits.lua
var Limits string

// Balances stores copies of balances in the cache, if they are newer than the stored copies.
//
//go:embed balances.lua
var Balances string

// Interest records the balances that checks needed, and returns the recently recorded balances.
//
//go:embed interest.lua
var Interest string

// Leases grants, renews, counts or releases one lease of a concurrency limit, or restores lost leases.
//
//go:embed leases.lua
var Leases string

// Replicas registers or removes one replica, and returns the entries of all replicas.
//
//go:embed replicas.lua
var Replicas string
