// Package audit proves that what the ledger has stored agrees with its journal.
//
// It is a second implementation: SQL sums over the entries, and comparisons of these sums with balances, grants and periods. It
// must not import package ledger or its store, so that no rule that both apply can be wrong in both for one reason. The
// import is refused by a test of the architecture.
//
// # What is compared
//
//	A1  Entries of a balance are numbered without a gap, never run backwards in time, and each remaining_after follows from the
//	    entry before it.
//	A2  A period's sums are those of its entries; every period foots; closing and opening of neighbours meet.
//	A3  The remainder of a grant is what the entries left of it; open grants sum to remaining; the head burns first.
//	A4  What holds reserve is what grants and balance have as held.
//	A5  Per meter, over all balances: issued + refunded + adjusted = used + expired + remaining + held.
//	A6  A cached copy is not newer than its balance, and not different from it at the same entry.
//	A7  Every entry belongs to a balance that exists.
//
// # Clock, concurrency, failure
//
// A chunk of balances is read in one REPEATABLE READ transaction, so concurrent writes cannot be mistaken for differences. Instants
// come from PostgreSQL. An Auditor is safe for concurrent use. Differences are results, not errors; an error means that
// something could not be read.
package audit
