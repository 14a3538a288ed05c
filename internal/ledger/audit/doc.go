// Package audit verifies that the rows of the ledger agree with its journal.
//
// It is a second implementation of the ledger's sums. It reads the entries of each balance once, in order, and adds
// them up with its own table of kinds. Then it compares the sums with balances, grants and periods. It must not
// import package ledger or its store, so that one mistake cannot make a rule wrong in both implementations. A test of
// the architecture refuses the import.
//
// # What is compared
//
//	A1  Entries of a balance are numbered from 1 without a gap. No entry is older than the entry before it, and each
//	    is in the month of its instant. Each remaining_after follows from the entry before it.
//	A2  A period's sums equal the sums of its entries and give its closing balance; the next period opens with that
//	    balance.
//	A3  A grant agrees with the entry that created it; its remainder follows from its entries; open grants sum to
//	    remaining; the head grant is first in burn order; nothing is due before the balance's next event. Its status
//	    is one that its entries and its end permit.
//	A4  Holds, hold lines and refunds agree with the entries of their operations.
//	A5  Per meter, over all balances: issued + refunded + adjusted = used + expired + remaining + held.
//	A6  A cached copy of the stored state agrees with the balance.
//	A7  Entries, grants, periods, hold lines and checkpoints belong to balances that exist.
//	A8  The hash chain of a balance's entries equals the chain in its row.
//	A9  Plan, allowance and end of a period, the end of its allowance, and idle periods follow from terms. The auditor
//	    knows neither terms nor calendars. Its caller compares these with the ledger's own code: see Options.Terms.
//	A10 What a balance says about changes inside its open period follows from terms and entries: what the allowance is
//	    worth and short of, which earlier use counts, and since when. The auditor adds up the entries, its caller
//	    knows the terms: see Changes.
//	A11 The units of other meters that a balance has paid for, by their periods and by quarters of an hour, equal
//	    those of its entries' payments.
//	A12 The terms of each tenant and the versions of each plan give their hash chains (table terms_chains). A full
//	    pass begins the chain of rows that have none. While an instance of the version before may write rows
//	    without a chain (chain_start.terms_at), the pass adds such rows to the chain.
//
// # Checkpoints
//
// A comparison without a difference writes a row of checkpoints: all entries up to the row's seq are verified. Its
// state (checkpoint.go) is a JSON object:
//
//	v        the format
//	open     the start of the newest entry's period
//	held     units that holds reserve
//	forgave  the entry that last forgave overage
//	period   the sums of the newest entry's period, in the order of periodSums.list
//	totals   the sums of all periods: issued, used, refunded, expired, adjusted
//	grants   grants that had not ended, by id: issued, scheduled, returned, left, topped, voided,
//	         given, and the first entry
//	facts    a digest of the balance's row
//	paid     by meter: the newest period and quarter of an hour in which the balance paid for units of it, and their
//	         numbers
//
// An archived checkpoint (see Pin) replaces entries that were removed. Later passes begin at the balance's newest
// archived checkpoint, or at a later checkpoint.
//
// # Clock, concurrency, failure
//
// Balances are compared in REPEATABLE READ transactions, so concurrent writes cannot be mistaken for differences.
// Most entries of a large balance are read before the transaction, in ranges, because entries never change. Instants
// come from PostgreSQL. An Auditor is safe for concurrent use. Differences are results, not errors. A balance that
// cannot be read, because of a time-out or a lock, is reported and does not stop the pass. An error means that
// nothing more can be read.
package audit
