// Package journal keeps the monthly partitions of the table entries: it lists, creates, detaches and drops them. It
// also creates the partitions of events and their deliveries, and drops these partitions when they are EventsKept
// old.
//
// # Terms
//
// A month is a calendar month in UTC. The entries of a month are in its partition. Months ahead is the number of months
// after the current one that have a partition, without a gap.
//
// # Invariants
//
//	J1  There is no DEFAULT partition. Otherwise each new partition would lock out readers of entries, and no
//	    partition could be detached concurrently.
//	J2  A partition is created as a separate table and then attached. Readers and writers of entries neither wait
//	    for it nor delay it.
//	J3  A partition is detached CONCURRENTLY: the statement waits for transactions that have used entries, and no
//	    other statement waits for it.
//	J4  A statement that needs a lock waits for it at most lockWait at a time, and tries again later.
//	J5  A new partition has the columns, checks and indexes of entries. A new index of entries is created on each
//	    older partition CONCURRENTLY.
//
// # Clock
//
// The caller names the month.
//
// # Concurrency
//
// Any number of processes may work on one database. An advisory lock lets one process at a time create partitions.
//
// # Failure
//
// Errors are wrapped errors of the driver. MissingMonth recognizes that entries could not be written because a
// partition is missing. Partitions of later months are not needed yet, so a caller logs that a partition could not be
// created, and continues.
package journal
