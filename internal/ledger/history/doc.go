// Package history reads the journal and the closed periods: entries, operations, statements, use per hour or day, and
// balances of the past. In the background it writes sums of the journal, so that these queries stay cheap.
//
// # Terms
//
//	entry      one immutable line of the journal. seq numbers the entries of a balance from 1, without gaps
//	statement  the account of one period of one balance
//	report     a query that may have to read many entries: every query except the look-up of one operation and the
//	           list of the coming periods
//	rollup     a row of the table rollups: cumulative sums of a balance's entries 1 to seq. Rows are written at ends
//	           of half hours, and at least every 500 entries
//	view       a balance with its open period as package pg reads it. Events due until an instant are processed in
//	           memory
//
// # Invariants
//
//	H1  An answer about a closed period never changes.
//	H2  The open period comes from a view, so an answer is right even if the balance was not rolled. Entries that were
//	    stored after the view are left out, so that events which the view processed in memory are counted only once.
//	H3  The bounds of a period are seqs. Within a balance, created_at never decreases when seq increases, so bounds in
//	    time are found by binary search.
//	H4  Rollups change only the cost of an answer. A sum is the difference of two rows, plus the entries between the
//	    rows and the bounds. Entries never change, so a row never changes. A row never splits an operation. Use per
//	    hour or day is computed from the rows at the ends of the hours or days.
//	H5  Only a few reports run at once, on connections of their own, and only a bounded number waits. Each report has
//	    a time limit. If the caller of a report has gone, the report is cancelled in the database.
//	H6  A replica may lag behind the views, which come from the primary. A report about one balance reads the primary
//	    if the replica lacks an entry that the view has. The lag is measured every second. If the replica has reached
//	    a WAL position, it has all commits until the instant at which the primary was at this position.
//
// # Clock
//
// The clock is the agreed clock of package pg.
//
// # Concurrency
//
// A Reader is safe for concurrent use. A roll may close a period between two statements of one answer. The answer stays
// right, because entries and closed periods never change.
//
// # Failure
//
// Errors are *errcode.Error. errcode.QueueFull means that too many reports wait. errcode.ReportTooSlow means that the
// report exceeded its time limit. errcode.Unavailable means that the database did not answer; a retry is safe.
package history
