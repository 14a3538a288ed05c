// Package archive moves old months out of the ledger: it exports them to Parquet files, and then removes them from the
// database.
//
// # Terms
//
//	border    the first instant of the oldest month that is kept. Earlier entries are archived
//	archive   a directory with one Parquet file per table (for entries: per month) and manifest.json, which lists
//	          the files with their rows and SHA-256
//	archived  state of a month: its entries are in an archive, and no longer in the database
//
// # Invariants
//
//	A1  Nothing is removed before all files and the manifest are complete and on disk, and the journal was verified
//	    without a difference.
//	A2  Only rows that the files contain are removed. A partition is removed only if its file has the same number of
//	    rows. Other rows are removed by the keys in their file.
//	A3  Months in which keys of operations are still looked up are not removed.
//	A4  The border is committed before the first row is removed. A reader checks the border after it has read rows.
//	    So it notices that rows are missing.
//	A5  A run can be killed at any point. The next run with the same arguments continues. An incomplete file
//	    is written again.
//	A6  Grants whose ids clients chose are not removed, because the ids must stay unique.
//
// # Clock
//
// PostgreSQL's clock and the host's clock may differ. The earlier clock decides which months may be removed.
//
// # Concurrency
//
// One run per database at a time; an advisory lock enforces that. The service keeps running. Partitions are detached
// concurrently, and other rows are removed some thousand at a time.
//
// # Failure
//
// A *Refusal means that the request is not allowed; nothing was done. After any other error the next run continues the
// archive, and every answer of the database is right or reports that the data is archived.
package archive
