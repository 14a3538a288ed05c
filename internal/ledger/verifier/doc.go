// Package verifier runs verifications: on demand, in the background of an instance, and continuously at a low rate. Package ledger/audit
// decides what agrees with the journal; this package says when it is asked, and keeps what it found.
//
// # Words
//
//	verification  one pass over the balances of a tenant or of all tenants; a row of verifications if a client asked for it
//	full pass     reads the whole journal; any other one reads what was entered since the checkpoints of clean passes
//	watch         the continuous verifier: one pass after another, with pauses
//
// # Invariants
//
//	V1  An instance runs at most one verification that clients asked for. Whoever asks for the same one again gets the running one.
//	V2  The watch has a place of its own. Neither it nor a verification waits for rolls, and rolls wait for none of them.
//	V3  What could not be read is neither clean nor different: a verification fails then, and the watch keeps what it found before.
//	V4  What differs is told (events.VerifyDrift): of a verification that a client asked for in the transaction that records its end, once for each balance;
//	    of the watch and of commands once a day.
//	V5  Verifications read through connections of their own, so that they cannot take those of balances and reports.
//
// # Clock, concurrency, failure
//
// Instants come from PostgreSQL. A Verifier is safe for concurrent use. Errors are *errcode.Error; differences are results, not errors. A
// verification whose process ends stays in the table and counts as abandoned after a minute without a heartbeat.
package verifier
