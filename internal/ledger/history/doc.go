// Package history reads the journal and the closed periods: entries, operations, statements, use per hour or day, and balances of the past.
// In the background it writes sums of the journal, so that these questions stay cheap.
//
// # Terms
//
//	entry      one immutable line of the journal. seq numbers the entries of a balance from 1, without gaps
//	statement  the account of one period of one balance
//	report     a question whose answer may need many entries: all of these but an operation and the list of coming periods
//	rollup     cumulative sums of a balance's entries 1 to seq, in a row of table rollups: where half hours end, and at least every 500 entries
//	view       a balance with its open period as package pg reads it: what was due until an instant is worked off in memory
//
// # Invariants
//
//	H1  An answer about a period that is closed never changes.
//	H2  The open period comes from a view, so an answer is right although nobody has rolled the balance. What a view made in memory is
//	    counted once: entries that were stored after the view are left out.
//	H3  Bounds of a period are seqs. Within a balance, created_at never falls as seq rises: bounds in time are found by bisection.
//	H4  Rollups change no answer, only its cost. A sum is the difference of two rows, and the entries before the one and after the other. Entries never
//	    change, so a row never changes. A row never splits an operation. Use per step takes its steps from the rows at their ends.
//	H5  A few reports run at once, on connections of their own, and a bounded number wait. Each has a time limit, and a report that nobody waits for
//	    is cancelled in the database.
//	H6  A replica may lag behind the views, which come from the primary. A report about one balance reads the primary if the replica lacks an entry that
//	    the view has. How far it is behind is looked at every second: it has everything until the instant at which the primary was where it is now.
//
// # Clock
//
// The ledger's: the agreed clock, as package pg knows it.
//
// # Concurrency
//
// A Reader is safe for concurrent use. A roll may close a period between two statements of one answer: the answer stays right, because entries
// and closed periods never change.
//
// # Failure
//
// Errors are *errcode.Error. errcode.QueueFull: too many reports wait. errcode.ReportTooSlow: the report's time is over. errcode.Unavailable: the database did not
// answer; a retry is safe.
package history
