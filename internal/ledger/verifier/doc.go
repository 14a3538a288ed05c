// Package verifier runs verifications: on demand, in the background of an instance, and continuously at a low rate.
// Package ledger/audit decides what agrees with the journal; this package starts it and stores its findings.
//
// # Words
//
//	verification  one pass over the balances of one or all tenants; a row of verifications if a client requested it
//	full pass     reads the whole journal; other passes read what was entered since the checkpoints of clean passes
//	watch         the continuous verifier: one pass after another, with pauses
//
// # Invariants
//
//	V1  An instance runs at most one verification for clients. A second request for the same one returns that one.
//	V2  The watch has its own slot. Neither it nor a verification waits for rolls, and rolls wait for neither of them.
//	V3  What could not be read is neither clean nor different: a verification then fails, and the watch keeps its
//	    earlier findings.
//	V4  Differences emit an event (events.VerifyDrift). A verification that a client requested emits one for each
//	    balance, in the transaction that records its end; the watch and commands emit one for each balance and day.
//	V5  Verifications read through their own connections, so that they cannot use up those of balances and reports.
//
// # Clock, concurrency, failure
//
// Instants come from PostgreSQL. A Verifier is safe for concurrent use. Errors are *errcode.Error; differences are
// results, not errors. A verification whose process ends stays in the table and counts as abandoned after a minute
// without a heartbeat.
package verifier
