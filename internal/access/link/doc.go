// Package link stores links to the customers' pages in PostgreSQL, so that every instance accepts them.
//
// # Terms
//
//   - link: a URL of a read-only page about one tenant. The URL works until the link ends. A link has an id, which
//     may be logged, and a secret of 128 random bits and their tag (access.Strangers).
//   - return URL: a URL of the caller's application. The page has a link to this URL.
//
// # Invariants
//
//  1. A secret is shown only once, in the URL. PostgreSQL has only its SHA-256.
//  2. A link ends at the end of its lifetime. It also ends when all links of its tenant are ended, and when the key
//     that created it is revoked or expires.
//  3. The keys of a tenant have created at most PerTenant links, and a further one is refused. Others have created at
//     most PerTenant links for the tenant, and a further one ends the oldest of theirs. Ended links do not count.
//  4. The audit log records when a link is created and when all links of a tenant are ended. The lines do not contain
//     the secret.
//
// # Clock, concurrency, failure
//
// PostgreSQL's clock decides when a link ends. All methods may be called from any goroutine. They fail with errors of
// package pgstore or with ErrNone.
package link
