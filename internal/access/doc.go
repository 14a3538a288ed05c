// Package access decides who may call the API. It keeps the keys with their scopes and tenants.
//
// # Terms
//
//   - key: an id, a name and scopes. A key may be bound to a tenant and may expire. To use a key, a caller sends its
//     secret.
//   - secret: the text that a caller sends. It is shown only once, after its creation, and only its SHA-256 is
//     stored. It has 256 random bits, so a slow hash would not make it safer. A key has one secret, or several during
//     the overlap after a rotation.
//   - scope: a set of rights: use (debit and check), read, or admin, which includes both.
//   - bound key: a key for one tenant. It gives no access to other tenants.
//   - bootstrap key: the admin key of the configuration. It is not stored, has every scope, and the API cannot change
//     it.
//   - key of ids: a secret that signs the ids of leases and charges. Callers never send this secret.
//   - made-up key: a key without a secret that exists only in a context. It has the rights of a person who signed in
//     to pages of this process without a key.
//   - stranger: a visitor who shows a secret, a link or a cookie that does not exist.
//   - tag: the second half of a link's or session's secret. It proves that an instance of this installation made it.
//   - directory: all valid keys in the memory of a process.
//
// # Invariants
//
//  1. A secret is neither stored nor logged, and no error contains it.
//  2. Secrets are looked up by their hash, and hashes are compared in constant time. So the time until the answer
//     reveals nothing about a secret.
//  3. The instance that revokes a key refuses it at once, and all other instances refuse it within a second. The same
//     is true of the earlier secrets of a rotated key, from the end of their overlap on. The transaction of a change
//     announces the change, as in the catalogue. While PostgreSQL is away, no key can be revoked, and the directory
//     does not change.
//  4. A new key works at once on every instance. If a secret has the right form but is not in memory, the request
//     waits until the keys are read again.
//  5. An address may show 20 invented secrets, links and cookies a second (Strangers). A right secret that is in
//     memory, an open session and an open link are always accepted. So strangers cannot lock out others at their
//     address.
//
// # Clock
//
// expires_at and the ends of overlaps are compared with the instance's clock at each request. PostgreSQL's clock
// decides which status a list shows, and whether the expiry of a new key is in the future.
//
// # Concurrency
//
// All methods may be called from any goroutine. A Directory has one goroutine from Start to Stop.
//
// # Failure
//
// Errors of methods of Store are *errcode.Error. Authenticate fails with *Refusal.
package access
