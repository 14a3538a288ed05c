// Package auditlog is the audit log: who changed what, when, and from where.
//
// # Terms
//
//   - actor: who asks. It has the id and the name of a key. Bootstrap is the key of the configuration. Command is a command that works on the
//     database itself, such as `quotasvc apply`.
//   - line: one change of one object with its actor, before and after, and the reason that was given.
//
// # Invariants
//
//  1. A line is inserted by the transaction of its change. There is no change by an administrator without its line, and no line
//     without its change.
//  2. Lines are never updated or deleted. The role of the service has no right to.
//  3. Lines have no secrets: neither a key nor its hash.
//
// # Clock
//
// at is PostgreSQL's clock when the line is inserted. It decides nothing.
//
// # Concurrency
//
// All functions may be called from any goroutine. There are no goroutines of its own.
//
// # Failure
//
// Errors of the driver are returned wrapped. A change whose line cannot be inserted fails with it.
package auditlog
