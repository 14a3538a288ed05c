// Package pg runs the ledger on PostgreSQL: it reads the state that package ledger decides on, and writes what was decided, durably and
// exactly once.
//
// # The way of an operation
//
//	do.go      Do puts the operation into its tenant's lane. A lane takes what waits as one batch.
//	batch.go   runBatch repeats attempts until the batch is decided and committed, or fails for good.
//	tx.go      attempt is one transaction, from top to bottom: locate, lock, read more, decide, commit.
//	plan.go    what has to be locked and read. It grows when a decision needs further balances.
//	locate.go  before the locks: the balances of holds, grants and operations that requests name
//	shelf.go   where operations wait whose balances another transaction has locked
//	refusal.go why an operation was not decided, and what its caller is told
//	trail.go   which operations of administrators are recorded in the audit log
//	load.go, scan.go, terms.go   the reads; write.go the writes; learned.go: what is likely to be needed
//
// A plain debit takes two round trips: one locks and reads, one writes and commits.
//
// A dry run and a check take the same way on a view (view.go): a snapshot that nothing locks and nothing writes. Reads (balances.go, and package
// history) use views too, so that a balance is right although nobody has rolled its period.
//
// # Invariants
//
//	P1  Nothing is answered before its COMMIT is known. After a lost answer to COMMIT the same batch runs again on a new connection, where the
//	    stored keys answer it.
//	P2  Balance rows are the only rows that are locked, always in key order. A balance without a row is not locked: its first batch inserts the
//	    row, and of two that do so at the same time one fails and runs again.
//	P3  What is stored under the batch's keys is read in a statement after the lock: a statement's snapshot is older than its wait.
//	P4  No SQL error means a business outcome. One that retries cannot cure is searched for by halving the batch.
//	P5  A batch never uses a request's context: whoever goes away takes nothing from its neighbours.
//	P6  A caller is answered within refusalMax. A locked row delays the operations on it alone: they wait on the shelf, in order.
//	P7  An operation of an administrator that is audited has its line in the audit log in the same transaction. Replays and refusals have none.
//
// # Clock
//
// PostgreSQL's, read after the locks, while it agrees with the instance's; else the earlier of the two (package clock, tx.scanClock). Before the
// locks the clock is only estimated (Ledger.Now), to choose the partitions in which keys are looked up; keys.go checks that choice.
//
// # Concurrency
//
// A Ledger is safe for concurrent use. Any number of instances may work on one database: correctness is in the row locks, never in which
// lane or instance serves a tenant.
//
// # Failure
//
// Errors are *ledger.Error. CodeUnavailable and CodeQueueFull: this attempt did nothing. CodeOutcomeUnknown: it may have been done; a retry with
// the same key finds out. Every statement has a time limit. While PostgreSQL is known to be away (package breaker), nothing is tried.
package pg
