// Package auditlog records changes in the audit log: who changed which object, when, and from which address.
//
// # Terms
//
//   - actor: the user or program that makes a change. It has the id and the name of a key. The actor Bootstrap is the
//     admin key of the configuration. The actor Command is a command that works directly on the database, such as
//     `quotasvc apply`.
//   - line: the record of a change of one object. It has the actor, the object before and after the change, and the
//     reason that the actor gave.
//
// # Invariants
//
//  1. A line is inserted by the transaction of its change. So there is no change by an administrator without a line,
//     and no line without its change.
//  2. Lines are never updated or deleted. The database role of the service has no right to do so.
//  3. Lines contain no secrets: neither keys nor hashes of keys.
//
// # Clock
//
// The column `at` contains the time at which the line was inserted, by PostgreSQL's clock. No decision depends on it.
//
// # Concurrency
//
// All functions may be called from any goroutine. The package starts no goroutines.
//
// # Failure
//
// Errors of the driver are returned wrapped. If a line cannot be inserted, its change fails.
package auditlog
