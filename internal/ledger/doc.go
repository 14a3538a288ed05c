// Package ledger is the truth about what tenants may still use: it grants, debits and resets units durably, exactly once,
// in PostgreSQL.
//
// # Words
//
// A balance belongs to a (tenant, meter, subject) and counts one open period. A grant is an immutable amount that can be
// spent between effective_at and expires_at; what a plan allows per period is a grant too, of source allowance. A debit
// draws from grants in burn order: priority, expires_at, effective_at, id. Every change writes entries; an operation is one
// client request, known by (tenant, Idempotency-Key), and its entries are also the memory of that key.
//
// # Invariants
//
//	L1  remaining = opening + granted + refunded - used - expired + adjusted - held, and is never negative.
//	L2  The remainders of a balance's open grants sum to remaining. The head grant's is kept in the balance row.
//	L3  Entries of a balance are numbered 1, 2, 3, ... without a gap, and never run backwards in time.
//	L4  (tenant, operation id) is decided once; every retry gets the stored answer or is refused as another request.
//	L5  A denied operation changes nothing (with denial_replay it leaves one entry that moves no amount).
//	L6  How requests are cut into batches, which instance serves them, and whether a sweeper runs cannot be seen in any
//	    answer: advance is a pure function of the stored state and the clock.
//	L7  Nothing is answered before its COMMIT is known.
//
// # Clock
//
// The only clock is PostgreSQL's, read after the balance rows are locked. A balance's time never runs backwards: the
// instant of a decision is the later of that reading and the balance's newest entry.
//
// # Shape
//
// The decision is a pure state machine without I/O (machine.go, book.go, advance.go, waterfall.go, and a file for each kind of operation) over
// state that load.go, store.go
// and write.go move. Requests wait in lanes (package lane); a lane takes what waits, and run.go turns it into one transaction of two
// round trips: lock and read, then write and commit. No SQL error ever stands for a business outcome.
//
// # Failure
//
// Errors are *Error with a Code. After a lost COMMIT acknowledgement the same batch runs again on a new connection, where
// the stored keys answer it; if that fails too, callers get CodeOutcomeUnknown and retry with the same key. CodeUnavailable
// and CodeQueueFull mean that nothing was done.
package ledger
