// Package auditlog records changes in the audit log: the actor, the object, the time and the client's address.
//
// # Terms
//
//   - actor: the user or program that makes a change. It has the id and the name of a key. Bootstrap is the key of
//     the configuration. Command is a command that works directly on the database, such as `quotasvc apply`.
//   - line: one change of one object with its actor, the object before and after the change, and the given reason.
//
// # Invariants
//
//  1. A line is inserted by the transaction of its change. So every change by an administrator has a line, and every
//     line has its change.
//  2. Lines are never updated or deleted. The database role of the service has no right to do so.
//  3. Lines have no secrets: neither a key nor its hash.
//
// # Clock
//
// The column at is PostgreSQL's clock when the line is inserted. No decision depends on it.
//
// # Concurrency
//
// All functions may be called from any goroutine. The package starts no goroutines.
//
// # Failure
//
// Errors of the driver are returned wrapped. If a line cannot be inserted, its change fails.
package auditlog
