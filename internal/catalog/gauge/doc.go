// Package gauge holds meters whose value is set, as the seats of a team are: what is in use now, not what was used in a period.
//
// # Terms
//
//   - gauge: a meter of kind gauge, of a tenant or of one of its subjects. Its value is an integer of 0 or more.
//   - limit: the amount that the tenant's plan has of the meter now, or the tenant's override. For a subject it is the plan's per_subject.
//   - over: how far the value is above the limit, because the limit fell.
//   - entry: an immutable line of the gauge's journal: the value before and after, the key it was changed with, and the limit at that moment.
//
// # Invariants
//
//	G1  A value rises above its limit never. One that is above it, because the plan was changed, can only fall.
//	G2  No change of a plan, and no end of a period, changes a value. So nothing is minted, and nothing is lost.
//	G3  Entries of a gauge are numbered 1, 2, 3, ... without a gap; each begins with the value that the one before ended with, the first with 0. The
//	    stored value is that of the newest entry. Package audit verifies it.
//	G4  (tenant, Idempotency-Key) changes a gauge once. A repeat gets the stored answer; another request with the key is refused. Keys are remembered
//	    for ever: there are few. They are of gauges alone, and may equal those of debits.
//	G5  Entries are never deleted, by the archive neither (docs/decisions/gauges.md). Nothing but a verification of everything costs more for it.
//	G6  A refused change, and a dry run, leave nothing.
//
// # Clock
//
// PostgreSQL's, as the catalogue agrees it with the instance's. It stamps entries and decides nothing.
//
// # Concurrency and failure
//
// All methods may be called from any goroutine. A change locks the gauge's row: changes of one gauge run one after the other, in one transaction each.
// Errors are *errcode.Error, or those of the catalogue's store: errcode.Unavailable if PostgreSQL did not answer in time; the same request may be sent
// again with the same key.
package gauge
