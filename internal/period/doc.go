// Package period computes the periods of allowances: calendar arithmetic and nothing else.
//
// # Terms
//
//   - period: a half-open stretch of time [start, end) in UTC.
//   - interval: how long a period is: an hour, a day, a week, a month, a year, or once (a single period without an end).
//   - anchor: where the count of periods begins. Calendar: periods begin where the calendar's hour, day, week (Monday),
//     month or year begins. Tenant: they begin at the tenant's anchor instant, and repeat its day and time of day.
//   - wall clock: what a clock on the wall in the schedule's zone shows, date included.
//
// # Invariants
//
//  1. Periods of a schedule follow each other without gap or overlap: Next(p).Start == p.End, and none is empty.
//  2. Boundary n is computed from the anchor, never from another boundary, so nothing drifts: the wall clock of the anchor
//     plus n intervals, the day clamped to the month's last. An anchor on 31 January gives 28 or 29 February, then 31
//     March; one on 29 February gives 28 February in common years.
//  3. Days, weeks, months and years are of the wall clock, so a day has 23 or 25 hours where the clock changes. A boundary
//     whose wall time is skipped is the first instant after the gap. One whose wall time comes twice is the earlier
//     instant. If a gap swallows a whole period, as 30 December 2011 in Apia, that period does not exist.
//  4. Only the wall clock of a tenant's anchor counts: an anchor in the second pass of an hour that comes twice has its
//     first boundary in the first pass.
//  5. Tenant hours are 3600 s each, counted from the anchor instant. Calendar hours begin at the top of the hour of the wall
//     clock, so at minute 15 in UTC for Kathmandu (+5:45). They are 3600 s each too, but for the one in which the
//     zone's offset changes by a part of an hour (Lord Howe, 30 minutes, twice a year): it lasts until the next top.
//  6. Anchors have microseconds, as PostgreSQL does; finer digits are cut off.
//  7. The period of interval once is [anchor instant, Forever), whatever the kind of anchor. Nothing comes before or after.
//
// # Bounds
//
// Instants and tenant anchors lie from Earliest up to and not including Latest. Anything else is an ErrOutOfRange that
// names the bound. Within them, every computed boundary is a year that four digits hold.
//
// # Clock, concurrency, failure
//
// The package reads no clock and does no I/O, but for the zone database behind ParseZone. Everything is a value and safe
// for concurrent use. Each call costs the same, however far the anchor is away.
package period
