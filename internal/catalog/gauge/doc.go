// Package gauge holds gauges: meters whose value a client sets, such as the seats of a team. The value is the number
// in use now, not the use of a period.
//
// # Terms
//
//   - gauge: a meter of kind gauge, of a tenant or of one of its subjects. Its value is an integer of 0 or more.
//   - limit: the largest value that can be set. It is the amount of the meter in the tenant's present plan, or the
//     tenant's override. For a subject it is the plan's per_subject.
//   - over: the units by which the value exceeds the limit, after the limit was reduced.
//   - entry: an immutable line of the gauge's journal. It has the value before and after, the Idempotency-Key of the
//     change, and the limit at that moment.
//
// # Invariants
//
//	G1  No change raises a value above its limit. If the value is above its limit because the plan was changed, a
//	    change can only lower it.
//	G2  No change of a plan, and no end of a period, changes a value. So plan changes cannot create or lose units.
//	G3  Entries of a gauge are numbered 1, 2, 3, ... without a gap. Each entry begins with the value with which the
//	    previous entry ended, the first entry with 0. The stored value is the value after the newest entry. Package
//	    audit verifies this.
//	G4  A key (Idempotency-Key) of a tenant changes a gauge at most once. A repeat gets the stored answer. A different
//	    request with the same key is refused. Keys are stored for ever, because they are few. A key of a gauge may be
//	    equal to a key of a debit: the two are independent.
//	G5  Entries are never deleted, not even by the archive (docs/decisions/gauges.md). The only cost is that a
//	    verification of the whole database takes longer.
//	G6  A refused change, and a dry run, store nothing.
//
// # Clock
//
// Entries contain the time of PostgreSQL's clock, checked against the instance's clock as in the catalogue. No
// decision depends on this time.
//
// # Concurrency and failure
//
// All methods may be called from any goroutine. A change locks the gauge's row: changes of one gauge run one after
// the other, in one transaction each. Errors are *errcode.Error, or errors of the catalogue's store. After
// errcode.Unavailable, which means that PostgreSQL did not answer in time, the same request may be sent again with
// the same key.
package gauge
