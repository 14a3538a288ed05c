// Package archive takes old months out of the ledger: it exports them to Parquet files, and then removes them from the database.
//
// # Terms
//
//	border    the first instant of the oldest month that is kept. What happened before it is archived
//	archive   a directory with one Parquet file per table (of entries: per month) and manifest.json, which names them with rows and SHA-256
//	archived  of a month: its entries are in an archive, and no longer in the database
//
// # Invariants
//
//	A1  Nothing is removed before all files and the manifest are complete and on disk, and the journal was verified without a difference.
//	A2  What is removed is what the files hold: partitions with as many rows as their file, rows by the keys that their file lists.
//	A3  Months that the memory of keys reaches into stay.
//	A4  The border is committed before the first row is removed. A reader looks at it after it has read, so no answer lacks rows unnoticed.
//	A5  A run can be killed at any point, and called again with the same arguments: it goes on. A file that was begun is begun anew.
//	A6  What a client named stays while the name has to be unique: grants of clients are not removed.
//
// # Clock
//
// PostgreSQL's and the host's: the earlier one decides which months may go.
//
// # Concurrency
//
// One run per database at a time; an advisory lock holds it. The service goes on meanwhile. Partitions are detached concurrently, and other rows are
// removed some thousand at a time.
//
// # Failure
//
// A *Refusal says that the command asks for what is not allowed; nothing was done. Any other error leaves an archive that the next run continues, and
// a database in which every answer is right or says archived.
package archive
