// Package session stores the sessions of the console in PostgreSQL, so that every instance accepts them.
//
// # Terms
//
//   - id: 128 random bits and their tag (access.Strangers). Only the browser has them, in its cookie.
//   - session: a row for a user who signed in with a key. Until the session ends, the row connects an id with the
//     secret of this key.
//   - token: a value that is derived from the id. Every form contains it. Only a reader of the page can know it.
//
// # Invariants
//
//  1. PostgreSQL has neither an id nor a secret in plain text. The name of a session's row, and the key that encrypts
//     the secret, are derived from the id with HKDF. So the rows, or a backup of them, give access to nobody.
//  2. A session ends after a fixed time, when the user ends it, or when its key ends. The caller of Open must
//     authenticate the secret, which fails if the key has ended.
//  3. A key has at most PerKey sessions. If a further session is created, the oldest session ends.
//
// # Clock, concurrency, failure
//
// PostgreSQL's clock decides when a session ends. All methods may be called from any goroutine. They fail with errors
// of package pgstore or with ErrNone.
package session
