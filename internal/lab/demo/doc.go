// Package demo fills the database of `quotasvc dev` with an example: some tenants with weeks of use, refusals, and
// balances that are nearly used up.
//
// # Terms
//
//   - story: the events of the Days before the first start, hour by hour. It ends at the present. At 14:05 of its
//     last day, in acme's zone, acme asks for far too much.
//   - behind: the time by which the ledger's clock is behind the present while the story is played. The test clock of
//     a new database starts with that difference.
//
// # Invariants
//
//  1. The story uses only the API, as a client would.
//  2. The story is played once. A start that finds the clock at the present or ahead of it changes nothing.
//  3. After an interruption the next start continues the story, from the hour that the clock shows. Requests carry
//     idempotency keys that contain the hour, so nothing takes effect twice.
//  4. After any failure the clock is set to the present, unless the process ends before that.
//
// # Clock, concurrency, failure
//
// Only the story moves the ledger's time, so nobody else should use the service until the story has ended. Rate limits
// and the audit log use real time: they show when the requests of the story were really sent.
package demo
