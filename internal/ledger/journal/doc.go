// Package journal keeps the monthly partitions of the table entries: it lists, makes, detaches and drops them. It makes those of events and of
// their deliveries with them, and drops these once they are EventsKept old.
//
// # Terms
//
// A month is a calendar month in UTC. The entries of a month lie in its partition. Months ahead is how many months after the current one have
// a partition, without a gap.
//
// # Invariants
//
//	J1  There is no DEFAULT partition. It would take a lock on all its readers whenever a partition is made, and forbid to detach one concurrently.
//	J2  A partition is made as a table of its own and attached then. That waits for nobody who reads or writes entries, and nobody waits for it.
//	J3  A partition is detached CONCURRENTLY: it waits for transactions that have used entries, and nobody waits behind it.
//	J4  What needs a lock waits for it at most lockWait at a time, and tries again later.
//	J5  A new partition has the columns, checks and indexes of entries. A new index of entries is made for each older partition CONCURRENTLY.
//
// # Clock
//
// The caller names the month.
//
// # Concurrency
//
// Any number of processes may work on one database. An advisory lock lets one make partitions at a time.
//
// # Failure
//
// Errors are those of the driver, wrapped. MissingMonth recognizes that entries could not be written for want of a partition. Nobody needs the
// partition of a later month, so a caller logs that it could not be made, and goes on.
package journal
