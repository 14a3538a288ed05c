// Package period computes the periods of allowances. It does only calendar arithmetic.
//
// # Terms
//
//   - period: a half-open time range [start, end) in UTC.
//   - interval: the length of a period: an hour, a day, a week, a month, a year, or once. Once means one period
//     without an end.
//   - anchor: the start of the first period. With the kind Calendar, periods begin with the calendar's hour, day, week
//     (Monday), month or year. With the kind Tenant, the first period begins at the tenant's anchor instant, and later
//     periods begin at the same day and time of day.
//   - wall clock: the clock that shows the local date and time in the schedule's zone.
//   - gap, overlap: wall times that do not exist, or that exist twice, because the zone's offset changes.
//
// # Invariants
//
//  1. The periods of a schedule cover time without gaps: the period that contains p.End starts at p.End, and no
//     period is empty.
//  2. Boundary n is the wall time of the anchor plus n intervals. A day that the month lacks becomes the last day of
//     the month. Each boundary is computed from the anchor and not from another boundary, so errors do not add up. An
//     anchor on 31 January gives 28 or 29 February, then 31 March. An anchor on 29 February gives 28 February in
//     common years.
//  3. Days, weeks, months and years use the wall clock, so a day has 23 or 25 hours when the clock changes. A
//     boundary in a gap moves to the first instant after the gap. A boundary in an overlap is the earlier of its two
//     instants. If a gap contains a whole period, that period does not exist (30 December 2011 in Apia).
//  4. Only the wall time of a tenant's anchor counts. If the anchor is the later of two instants with the same wall
//     time, the first boundary is the earlier instant.
//  5. Tenant hours have 3600 s and are counted from the anchor instant. Calendar hours begin at full hours of the wall
//     clock. In Kathmandu (+5:45) that is minute 15 in UTC. Calendar hours have 3600 s, too, with one exception. A
//     zone's offset may change by a part of an hour (Lord Howe: 30 minutes, twice a year). Then the hour of the change
//     lasts until the next full hour.
//  6. Anchors have microsecond precision, as in PostgreSQL. Further digits are cut off.
//  7. With the interval once, the only period is [anchor instant, Forever), for both kinds of anchor.
//
// # Bounds
//
// Instants and tenant anchors must be in [Earliest, Latest). Other values give an ErrOutOfRange whose text contains
// the bounds. Within the bounds, the year of every computed boundary has at most four digits.
//
// # Clock, concurrency, failure
//
// The package reads no clock. It does no I/O, except that ParseZone reads the zone database. All types are safe for
// concurrent use. The cost of a call does not depend on the distance to the anchor.
package period
