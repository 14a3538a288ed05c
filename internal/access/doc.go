// Package access decides who may call the API: it has the keys, their scopes and their tenants.
//
// # Terms
//
//   - key: an id, a name, scopes, and perhaps a tenant and an end. A caller proves that it has the key by sending its secret.
//   - secret: the text that a caller sends. It is shown only once, when it is created. Only its SHA-256 is stored: it
//     has 256 random bits, so a slow hash would not make it safer. A key has one secret, or several while rotated
//     secrets still work.
//   - scope: use (spend and check), read, or admin, which includes both.
//   - bound key: a key of one tenant. It gives no access to other tenants.
//   - bootstrap key: the key of the configuration. It is not stored, has every scope, and cannot be changed by the API.
//   - key of ids: a secret that signs the ids of leases and charges. Callers never send it.
//   - made-up key: the rights of a person who signed in to pages of this process without a key. It has no secret and
//     exists only in a context.
//   - directory: all valid keys, in memory.
//
// # Invariants
//
//  1. A secret is neither stored nor logged, and no error contains it.
//  2. Secrets are looked up by their hash, and hashes are compared in constant time. So the time of an answer reveals
//     nothing about a secret.
//  3. A revoked key, and a rotated secret after its overlap, is refused on every instance within a second: the change
//     is announced in its transaction, like those of the catalogue. While PostgreSQL is away, no key can be revoked,
//     and the directory does not change.
//  4. A new key works at once on every instance: a request with an unknown secret of the right form waits until the
//     keys are read again.
//  5. An address may try 20 wrong secrets a second. A right secret is always accepted, so that nobody can lock out
//     other users of the same address.
//
// # Clock
//
// expires_at and the ends of overlaps are compared with the instance's clock at each request. PostgreSQL's clock
// decides which status lists show, and whether a new end is in the future.
//
// # Concurrency
//
// All methods may be called from any goroutine. A Directory has one goroutine from Start to Stop.
//
// # Failure
//
// Errors of stored keys are *errcode.Error. Authenticate fails with *Refusal.
package access
