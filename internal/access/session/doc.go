// Package session stores the sessions of the console in PostgreSQL, so that every instance accepts them.
//
// # Terms
//
//   - id: 256 random bits that only the browser has, in its cookie.
//   - session: a row that connects an id with the secret of the key that was used to sign in, until the session ends.
//   - token: a value that is derived from the id. Every form contains it, and only a reader of the page can know it.
//
// # Invariants
//
//  1. PostgreSQL has neither an id nor a secret. The name of the row and the key that encrypts the secret are derived
//     from the id with HKDF. So the rows, or a backup of them, give nobody access.
//  2. A session ends at a fixed time after its beginning, when it is ended, or when its key ends: the caller of Open
//     authenticates the secret.
//  3. A key has at most PerKey sessions. A further session ends the oldest session.
//
// # Clock, concurrency, failure
//
// PostgreSQL's clock decides when a session ends. All methods may be called from any goroutine. They fail with errors
// of package pgstore or with ErrNone.
package session
