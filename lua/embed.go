// Package lua embeds the scripts that run inside Redis. One file is one atomic operation; its header documents KEYS, ARGV
// with their units, the reply and the invariants. Every script replies with a flat array of integers.
//
// The package holds the sources only. Running them safely (once per call, resent only after NOSCRIPT) is
// ratelimit.Script's work.
package lua

import _ "embed"

// Limits decides requests against their buckets, each request all or nothing.
//
//go:embed limits.lua
var Limits string

// Balances stores cached balances that are newer than what is stored.
//
//go:embed balances.lua
var Balances string

// Leases gives, renews, counts or takes back one lease of a concurrency limit.
//
//go:embed leases.lua
var Leases string

// Replicas notes one replica's sign of life or goodbye, and says whose have been heard of late.
//
//go:embed replicas.lua
var Replicas string
