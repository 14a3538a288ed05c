// Package seal has the log of sealed days: its records, its Merkle trees, its signed checkpoints, and the file by which somebody else holds a seal.
//
// # Words
//
//	head        a balance's hash chain as it was when a day was sealed: the entries that it covers, and their hash
//	record      what a seal says of its day: how many heads there are, and the root of their Merkle tree
//	log         the records in the order in which they were made, in a Merkle tree of their own (RFC 6962) that only grows
//	checkpoint  the log's size and root as a note (golang.org/x/mod/sumdb/note), signed if there is a key
//	seal        a record with its checkpoint, the proof that the checkpoint contains the record, and the proof that the log before it is
//	            a beginning of this one
//
// # Invariants
//
//	S1  Seals of two days with checkpoints of one log agree about every earlier day, or Parse or the database's log refuses one of them.
//	S2  A head covers all entries of its balance up to its own, so the heads of one day cover earlier days too.
//	S3  Records, heads and checkpoints are made of lengths and bytes: no two different facts have one form.
//
// # Clock, concurrency, failure
//
// The package is pure. Values are not safe for concurrent use while they are built. Parse returns errors that say which part of a file is wrong.
package seal
