// Package ledger decides what tenants may still use. It is the domain of quotasvc: operations, balances, grants,
// periods and the journal, without any I/O. Package ledger/pg reads and writes its state in PostgreSQL; package
// ledger/audit verifies the stored result.
//
// # Words
//
//	balance    the account of a (tenant, meter, subject); its row has the sums of the open period
//	grant      an immutable amount that can be spent between effective_at and expires_at. Only expires_at can
//	           change, to a later instant. The allowance that a plan gives per period is a grant of source allowance
//	head       the grant from which the next debit draws. Its remainder is kept in the balance row
//	operation  one client mutation, identified by (tenant, Idempotency-Key). Its entries store the key
//	entry      an immutable line of the journal. Every change of a balance writes entries
//	book       a balance in memory, with the state that a decision needs
//	batch      operations that are decided together, on the books that were read for them
//
// A debit draws from grants in burn order: priority, expires_at, effective_at, id.
//
// # Invariants
//
//	L1  remaining = opening + granted + amended + refunded - used - expired + adjusted - held, and is never negative.
//	L2  The remainders of a balance's open grants sum to remaining.
//	L3  Entries of a balance are numbered 1, 2, 3, ... without a gap, and never run backwards in time.
//	L4  (tenant, operation id) is decided once. A retry gets the stored answer. A different request is refused.
//	L5  A denied operation changes nothing. With denial_replay it stores one entry, which changes no sum.
//	L6  No answer depends on the division into batches, the instance that serves a request, or whether a sweeper runs.
//	    advance is a pure function of the stored state and the clock.
//	L7  No operation is answered before the outcome of its COMMIT is known (package pg).
//	L8  Every entry is in the hash chain of its balance.
//	L9  An idle period, in which nothing happened besides its opening, has no rows and no entries. Its answers are the
//	    same as those of a stored period, because the same steps derive them.
//
// # Where things are
//
//	operation.go         the methods of every kind of operation: Targets, Demand, decide, rebuild
//	debit.go, grant.go, hold.go, holdchange.go, refund.go, adjust.go, grantchange.go   one kind of operation each
//	batch.go             decides calls in order; answers retries; rolls a refused operation back
//	allocate.go          divides an amount among grants, overflow meter and overage; denial.go explains denials
//	book.go, balance.go  the state of one balance; burn order; the sums that entries change
//	entry.go             the journal; the sums to which each kind of entry adds its amount
//	advance.go           processes due events: ends of holds, expiry, periods; overage.go carries overage over;
//	                     terms.go finds the terms in force; versions.go the version of the plan; change.go amends open
//	                     periods
//	restore.go           where units go that come back
//	idle.go, idlerun.go  skips idle periods as a run; derives the single periods of a run
//	changes.go           the rows that a decided batch has to write; chain.go extends the hash chains of its balances
//
// # Clock
//
// The caller passes the clock as Batch.Now. The caller reads PostgreSQL's clock after the balance rows are locked;
// package clock compares it with the instance's clock and returns one instant. A balance's time never runs backwards:
// the instant of a decision is the later of Batch.Now and the balance's newest entry.
//
// # Concurrency and failure
//
// Nothing in this package is safe for concurrent use: one goroutine owns a batch. Refusals are *errcode.Error with a
// Code for programs, a Detail for people and a Cause for logs.
package ledger
