// Package pg runs the ledger on PostgreSQL. It reads the state on which package ledger decides, and writes the
// decisions durably and exactly once.
//
// # Terms
//
// A call is one operation with its answer. A batch is a group of calls that one transaction decides. Its plan (plan.go)
// lists the rows to lock and to read, and has the batch's state. An attempt is one transaction of a batch. A call is
// queued while it waits for its lane, and parked while it waits for a balance that another transaction has locked.
//
// # The steps of an operation
//
//	do.go        Do puts the operation into the queue of its tenant's lane (enqueue). The lane takes the queued
//	             operations as one batch (runQueued).
//	batch.go     runBatch runs attempts until each call of the batch is answered or parked.
//	attempt.go   attempt is one transaction, from top to bottom: locate, lock, read more, decide, commit.
//	plan.go      the rows to lock and to read, and the state. A plan grows when a decision needs further balances.
//	locate.go    before the locks: the balances of holds, grants and operations that requests name
//	newrows.go   balances that have no row yet
//	tx.go        the connection of a transaction, its time limit and its end
//	lockwait.go  the queue of parked calls
//	refusal.go   why an operation was not decided, and what its caller receives
//	auditlog.go  which operations of administrators are recorded in the audit log
//	learned.go   balances and allowances that are likely to be needed, learned from earlier batches
//	load.go, scan.go, terms.go  the reads; write.go the writes
//
// A plain debit takes two round trips: one locks and reads, one writes and commits.
//
// A dry run and a check take the same steps on a view (view.go): a snapshot that is neither locked nor written. Reads
// (balances.go, and package history) use views too, so that a balance is right even if its period was not rolled.
//
// # The states of a batch
//
// A batch is in one of four states, which define how its next attempt locks balances and creates missing rows:
//
//	usual       waits up to lockTimeout for locks, creates missing rows in the transaction that uses them
//	rowsFirst   waits up to lockTimeout, creates missing rows in an earlier transaction
//	skipLocked  waits for no row, creates missing rows in an earlier transaction
//	waitLong    waits up to lockPatience, creates missing rows in an earlier transaction
//
// The table shows the steps of a call from its queue to its answer. After an attempt the first line that matches
// applies. The words in parentheses are the verdicts (verdictOf, classify) from which runBatch derives the next state.
//
//	state             what happened                                         next state
//	queued            PostgreSQL is known to be away                        refused: unavailable
//	queued            the queue is full                                     refused: queue_full
//	queued            queueMax or the caller's time is over, or the ledger  refused: unavailable
//	                  stops
//	queued            its lane takes it; it names a balance that is known   parked
//	                  to be locked
//	queued            its lane takes it                                     usual
//	skipLocked        balances are locked                                   parked: the calls that need them;
//	                                                                        the other calls go on
//	any               balances have no row, and get none with the batch:    the same, at once; the rows are
//	                  the state is not usual, or a tenant or a meter does   created, and rows that cannot be
//	                  not exist                                             created are noted
//	skipLocked,       likewise, and a tenant or a meter is locked           parked: the calls that need the row;
//	waitLong                                                                the other calls run again
//	any               decisions need more balances, grants or terms, or     the same, at once: in all up to
//	                  a part of a long backlog was processed                passesMax attempts
//	any               decisions request more rows without an end (bug)      refused: internal
//	any               committed, or there was nothing to write (done)       answered
//	usual             another transaction is creating the same row          rowsFirst
//	                  (row_taken)
//	usual, rowsFirst  the wait for a lock was too long (locked)             skipLocked
//	waitLong          likewise (locked)                                     parked: all calls
//	any               PostgreSQL refuses the rows to be written (data)      halved
//	any               COMMIT was not answered (unknown)                     the same, after a pause; the calls
//	                                                                        may be stored
//	any               an entry with the key of a call is in an unexpected   the same, after a pause; keys are
//	                  month (retry)                                         searched in every month
//	any               another failure that passes; nothing was written      the same, after a pause
//	                  (retry)
//	any               more than retriesMax failures in a row, and the last  halved; if the calls may be stored,
//	                  is a unique violation                                 refused: outcome_unknown
//	any               likewise, but the last is another failure; or the     refused: unavailable
//	                  time of the batch is over
//	any               the batch panicked, or the caller's time is over      refused: outcome_unknown
//	                  before the batch has ended
//	halved            the batch has several calls                           the same, each half by itself, with
//	                                                                        at most retriesHalved failures
//	halved            the batch has one call                                refused: internal
//	parked            it is the first call of each of its balances          skipLocked
//	parked            the first calls of its balances were decided          usual
//	parked            no first call was decided, and this round waits       waitLong
//	                  for a balance of the call
//	parked            parkedMax is over, its caller has gone, the queue is  refused: unavailable; queue_full if
//	                  full, or the ledger stops                             the queue is full
//
// If a call may be stored, every refusal is outcome_unknown instead. On Citus a batch has calls of only one shard
// group: the calls that a lane takes at once are divided by group (runBatches).
//
// # Invariants
//
//	P1  No call is answered before its COMMIT is known. After a lost answer to COMMIT the same batch runs again on a
//	    new connection, where the stored keys answer it.
//	P2  Balance rows are always locked in key order. The only other locks are share locks of tenants and meters when a
//	    row is created. A balance without a row is not locked: its first batch inserts the row. If two batches insert
//	    it at the same time, one of them fails and runs again.
//	P3  The entries stored under the batch's keys are read in a statement after the lock: PostgreSQL takes a
//	    statement's snapshot before the statement waits.
//	P4  No SQL error is an answer to a request. If retries do not cure an error, halving the batch finds the operation
//	    that causes it.
//	P5  A batch never uses a request's context: a caller that goes away does not affect the other callers.
//	P6  A caller is answered within refusalMax. A locked row delays only the operations on that row: they are parked,
//	    in order.
//	P7  An operation of an administrator that is audited has its line in the audit log in the same transaction.
//	    Replays and refusals have no line.
//
// # Clock
//
// Decisions use PostgreSQL's clock, read after the locks, while it agrees with the instance's clock. Otherwise they use
// the earlier of the two clocks (package clock, tx.scanClock). Before the locks the clock is only estimated
// (Ledger.Now), to choose the partitions in which keys are looked up; keys.go checks that choice.
//
// # Concurrency
//
// A Ledger is safe for concurrent use. Any number of instances may work on one database: the row locks keep balances
// correct, no matter which lane or instance serves a tenant.
//
// # Failure
//
// Errors are *errcode.Error. errcode.Unavailable and errcode.QueueFull mean that this attempt did nothing.
// errcode.OutcomeUnknown means that the operation may have been carried out; a retry with the same key finds out. Every
// statement has a time limit. While PostgreSQL is known to be away (package breaker), nothing is tried.
package pg
