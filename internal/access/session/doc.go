// Package session keeps the sessions of the console in PostgreSQL, so that every instance knows them.
//
// # Terms
//
//   - id: 256 random bits that only the browser has, in its cookie.
//   - session: a row that ties an id to the secret of the key that somebody signed in with, until it ends.
//   - token: a value derived from the id that every form carries. Who cannot read the page cannot know it.
//
// # Invariants
//
//  1. PostgreSQL has neither an id nor a secret. The name of the row and the key that seals the secret are both derived from the id by HKDF, so the
//     rows, or a backup of them, let nobody in.
//  2. A session ends at a fixed time after its beginning, when it is ended, or when its key is: whoever opens a session authenticates its secret.
//  3. A key has at most PerKey sessions. One more ends the oldest.
//
// # Clock, concurrency, failure
//
// PostgreSQL's clock. All methods may be called at once, and fail with the errors of the catalogue, whose connections they use.
package session
