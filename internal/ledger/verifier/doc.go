// Package verifier runs verifications: on demand, in the background of an instance, and continuously at a low rate.
// Package ledger/audit compares the tables with the journal; this package starts the comparison and stores its
// findings.
//
// # Words
//
//	verification  one pass over the balances of one or all tenants; a row of verifications if a client requested it
//	full pass     reads the whole journal; other passes read only the entries after the checkpoints of clean passes
//	watch         the continuous verifier: one pass after another, with pauses
//
// # Invariants
//
//	V1  An instance runs at most one verification for clients. A second request for the same tenant returns the
//	    running verification.
//	V2  The watch has its own slot. Verifications and the watch do not wait for rolls, and rolls do not wait for them.
//	V3  A balance that cannot be read is neither clean nor different: a verification then fails, and the watch keeps
//	    its earlier findings.
//	V4  Differences emit an event (events.VerifyDrift). A verification that a client requested emits one event
//	    for each balance, in the transaction that records its end. The watch and commands emit one event for each
//	    balance and day.
//	V5  Verifications read through their own connections, so that they use no connection of balances or reports.
//	V6  What follows from terms is compared with all terms that the tenant had agreed to when the period began, not
//	    only with those in force: terms may be committed late, and that is no difference.
//	V7  What a balance says about changes inside its open period is compared only if the version that opened the
//	    period knew of such changes.
//
// # Clock, concurrency, failure
//
// Instants come from PostgreSQL. A Verifier is safe for concurrent use. Errors are *errcode.Error; differences are
// results, not errors. A verification whose process ends stays in the table and counts as abandoned after a minute
// without a heartbeat.
package verifier
