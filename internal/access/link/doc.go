// Package link stores the links to the customer's page in PostgreSQL, so that every instance accepts them.
//
// # Terms
//
//   - link: a URL of a read-only page about one tenant, which works until the link ends. It has an id, which may be
//     logged, and a secret of 256 random bits.
//   - return URL: the target of the page's link back to the caller's application.
//
// # Invariants
//
//  1. A secret is shown once, in the URL. PostgreSQL has only its SHA-256.
//  2. A link ends when its time is over, when all links of its tenant are ended, or when the key that created it is
//     revoked or expires.
//  3. A tenant has at most PerTenant links. A further link ends the oldest link.
//  4. The creation of a link, and the end of all links of a tenant, are recorded in the audit log, without the
//     secret.
//
// # Clock, concurrency, failure
//
// PostgreSQL's clock decides when a link ends. All methods may be called from any goroutine. They fail with errors of
// package pgstore or with ErrNone.
package link
