// Package demo gives `quotasvc dev` something to see: some tenants with weeks of use, refusals, and balances that come to their end.
//
// # Terms
//
//   - story: what happens in the Days before the first start, hour by hour. It ends at the present.
//     At 14:05 of its last day, where acme is, acme asks for far too much.
//   - behind: how far the ledger's time is before the present while the story is told. The test clock of a new database begins there.
//
// # Invariants
//
//  1. Everything is made through the API, as a client would.
//  2. The story is told once. A start that finds the clock at the present or ahead of it changes nothing.
//  3. A story that was interrupted goes on at the next start, from the hour at which the clock stands. Its requests carry idempotency keys made of the
//     hour, so what was done is not done twice.
//  4. Whatever fails, the clock comes to the present, unless the process is ended meanwhile.
//
// # Clock, concurrency, failure
//
// The ledger's time is moved by the story alone, so nobody else should use the service meanwhile. Rate limits and the audit log stay on real time: they
// show the story's requests as made now.
package demo
