// Package access knows who may call the API: keys, what each of them may do, and for which tenant.
//
// # Terms
//
//   - key: an id, a name, scopes, and perhaps a tenant and an end. A caller proves that it has the key by sending its secret.
//   - secret: the text that a caller sends. It is shown once, when it is made. Only its SHA-256 is stored: it has 256 random bits, so a
//     slow hash would add nothing. A key has one secret, or two while a rotated one still works.
//   - scope: use (spend and check), read, or admin, which includes both.
//   - bound key: a key of one tenant. It reaches no other tenant.
//   - bootstrap key: the key of the configuration. It is not stored, has every scope, and cannot be changed by the API.
//   - key of ids: signs the ids of leases and charges. It is no key of a caller.
//   - made-up key: the rights of somebody who signed in to pages of this process without a key. It has no secret, and only its context carries it.
//   - directory: all keys in force, in memory.
//
// # Invariants
//
//  1. A secret is neither stored nor logged, and no error has it.
//  2. Secrets are looked up by their hash, and hashes are compared in constant time. So the time of an answer tells nothing about a secret.
//  3. A revoked key, and a rotated secret after its overlap, is refused on every instance within a second: the change is announced in
//     its transaction, like those of the catalogue. While PostgreSQL is away nothing can be revoked, and the directory stays as it was.
//  4. A new key works at once on every instance: a secret that has the right form but is unknown waits for one reading of the keys.
//  5. An address may try 20 wrong secrets a second. A right one is always accepted, so that nobody can lock out those who share an address.
//
// # Clock
//
// expires_at and the ends of overlaps are compared with the instance's clock when a request comes. PostgreSQL's clock decides what status lists
// show, and whether a new end lies in the future.
//
// # Concurrency
//
// All methods may be called from any goroutine. A Directory has one goroutine from Start to Stop.
//
// # Failure
//
// Errors of stored keys are *errcode.Error. Authenticate fails with *Refusal.
package access
