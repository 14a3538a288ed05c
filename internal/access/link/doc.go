// Package link keeps the links to the customer's page in PostgreSQL, so that every instance knows them.
//
// # Terms
//
//   - link: a URL that shows one tenant, read only, until it ends. It has an id, which logs may have, and a secret of 256 random bits.
//   - return URL: where the page leads back to.
//
// # Invariants
//
//  1. A secret is shown once, in the URL. PostgreSQL has its SHA-256 only.
//  2. A link ends at its time, when the links of its tenant are ended, and when the key that made it is revoked or expires.
//  3. A tenant has at most PerTenant links. One more ends the oldest.
//  4. Making a link, and ending those of a tenant, leave their line in the audit log, without the secret.
//
// # Clock, concurrency, failure
//
// PostgreSQL's clock. All methods may be called at once, and fail with the errors of the catalogue, whose connections they use, or with ErrNone.
package link
