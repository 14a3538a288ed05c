// Package history reads the journal and the closed periods: entries, operations, statements, use per hour or day, and balances of the past.
// It writes nothing.
//
// # Terms
//
//	entry      one immutable line of the journal. seq numbers the entries of a balance from 1, without gaps
//	statement  the account of one period of one balance
//	view       a balance with its open period as package pg reads it: what was due until an instant is worked off in memory
//
// # Invariants
//
//	H1  An answer about a period that is closed never changes.
//	H2  The open period comes from a view, so an answer is right although nobody has rolled the balance. What a view made in memory is
//	    counted once: entries that were stored after the view are left out.
//	H3  Bounds of a period are seqs. Within a balance, created_at never falls as seq rises.
//
// # Clock
//
// PostgreSQL's, as package pg knows it.
//
// # Concurrency
//
// A Reader is safe for concurrent use. A roll may close a period between two statements of one answer: the answer stays right, because entries
// and closed periods never change.
//
// # Failure
//
// Errors are *ledger.Error. CodeUnavailable: the database did not answer in time; a retry is safe.
package history
