// Package gauge holds meters whose value is set, such as the seats of a team. The value is the number in use now, not
// the use of a period.
//
// # Terms
//
//   - gauge: a meter of kind gauge, of a tenant or of one of its subjects. Its value is an integer of 0 or more.
//   - limit: the largest value that can be set. It is the amount of the meter in the tenant's plan now, or the
//     tenant's override. For a subject it is the plan's per_subject.
//   - over: how far the value is above the limit, after the limit was reduced.
//   - entry: an immutable line of the gauge's journal: the value before and after, the Idempotency-Key of the change,
//     and the limit at that moment.
//
// # Invariants
//
//	G1  A value never rises above its limit. A value that is above its limit because the plan was changed can only
//	    fall.
//	G2  No change of a plan, and no end of a period, changes a value. So no units are created or lost.
//	G3  Entries of a gauge are numbered 1, 2, 3, ... without a gap. Each entry begins with the value with which the
//	    previous entry ended, the first entry with 0. The stored value is the value of the newest entry. Package audit
//	    verifies it.
//	G4  (tenant, Idempotency-Key) changes a gauge once. A repeat gets the stored answer. Another request with the key
//	    is refused. Keys are remembered for ever, because there are few. They belong to gauges alone, and may equal
//	    keys of debits.
//	G5  Entries are never deleted, not even by the archive (docs/decisions/gauges.md). Only a verification of
//	    everything takes longer because of that.
//	G6  A refused change, and a dry run, store nothing.
//
// # Clock
//
// Entries carry the time of PostgreSQL's clock, checked against the instance's clock as in the catalogue. It decides
// nothing.
//
// # Concurrency and failure
//
// All methods may be called from any goroutine. A change locks the gauge's row: changes of one gauge run one after
// the other, in one transaction each. Errors are *errcode.Error, or errors of the catalogue's store. After
// errcode.Unavailable, which means that PostgreSQL did not answer in time, the same request may be sent again with
// the same key.
package gauge
