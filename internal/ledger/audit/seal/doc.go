// Package seal is the log of sealed days. It has the log's records, Merkle trees and signed checkpoints, and the file
// of a seal for a third party.
//
// # Words
//
//	head        the hash chain of a balance, of a tenant's terms or of a plan, as it was when a day was sealed: the
//	            rows that it covers, and their hash. A balance has a tenant and a meter. Terms have no meter. A plan
//	            has its id in place of the meter, and no tenant.
//	record      the facts of a sealed day: the number of its heads, and the root of their Merkle tree
//	log         the records in the order of their creation, in a Merkle tree of their own (RFC 6962) that only grows
//	checkpoint  the log's size and root as a note (golang.org/x/mod/sumdb/note), signed if there is a key
//	seal        a record with its checkpoint, the proof that the checkpoint contains the record, and the proof that
//	            the checkpoint's log begins with the log before this record
//
// # Invariants
//
//	S1  If two seals of one database disagree about an earlier day, either Parse or the comparison with the database's
//	    log refuses one of the two seals.
//	S2  A head covers all earlier rows of its chain, so the heads of one day cover earlier days as well.
//	S3  Records, heads and checkpoints consist of lengths and bytes: two different facts never have the same form.
//
// # Clock, concurrency, failure
//
// The package performs no I/O and reads no clock. Values are not safe for concurrent use while they are built. Errors
// of Parse name the wrong part of a file.
package seal
