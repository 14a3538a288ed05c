// Package audit proves that what the ledger has stored agrees with its journal.
//
// It is a second implementation. It reads the entries of each balance once, in order, and adds them up by its own table of kinds. Then it compares the
// sums with balances, grants and periods. It must not import package ledger or its store, so that no rule that both apply can be wrong in
// both for one reason. The import is refused by a test of the architecture.
//
// # What is compared
//
//	A1  Entries of a balance are numbered from 1 without a gap, never run backwards in time, and lie in the month of their instant. Each
//	    remaining_after follows from the entry before it.
//	A2  A period's sums are those of its entries; every period foots; closing and opening of neighbours meet.
//	A3  A grant is what the entry that made it says; its remainder is what the entries left of it; open grants sum to remaining; the head burns
//	    first; nothing is due before the balance's next event.
//	A4  Holds, hold lines and refunds are what the entries of their operations say.
//	A5  Per meter, over all balances: issued + refunded + adjusted = used + expired + remaining + held.
//	A6  A cached copy that speaks of the stored state says what the balance says.
//	A7  Entries, grants, periods, hold lines and checkpoints belong to balances that exist.
//	A8  The hash chain of a balance's entries is the one in its row.
//
// # Checkpoints
//
// A clean comparison leaves a row of checkpoints: everything up to its entry is true. Its state (checkpoint.go) is a JSON object:
//
//	v        the format
//	open     the start of the newest entry's period
//	held     units that holds reserve
//	forgave  the entry that last forgave overage
//	period   the sums of the newest entry's period, in the order of periodSums.list
//	totals   the sums of all periods: issued, used, refunded, expired, adjusted
//	grants   those that had not ended, by id: issued, scheduled, returned, left, topped, and the entry that made them
//	facts    a digest of the balance's row
//
// An archived checkpoint (Pin) stands for entries that were removed: every pass begins at it.
//
// # Clock, concurrency, failure
//
// Balances are compared in REPEATABLE READ transactions, so concurrent writes cannot be mistaken for differences. A balance with many entries is
// read in ranges before: entries never change. Instants come from PostgreSQL. An Auditor is safe for concurrent use. Differences are results, not
// errors. What cannot be read, because of a time-out or a lock, is reported and does not stop the pass. An error means that nothing more can be
// read.
package audit
