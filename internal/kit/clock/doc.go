// Package clock decides the time when two clocks may disagree: PostgreSQL's clock and the instance's clock.
//
// # Terms
//
//	reading   the time of PostgreSQL's clock, and the times of the instance's clock before the query and after the
//	          answer
//	skew      PostgreSQL's clock minus the instance's clock, as far as a reading proves it: 0 if PostgreSQL's time
//	          is between the instance's times
//	agree     the skew is at most SkewMax, in either direction
//	decision  the instant that is used for decisions, periods and expiries
//	ahead     the time that a test clock adds to the decision (package testclock); 0 in production
//
// # Invariants
//
//	C1  While the clocks agree, the decision is PostgreSQL's clock. So all instances decide by the same clock.
//	C2  While the clocks disagree, the decision is the earlier time. So one wrong clock alone never closes a period
//	    and never expires a grant.
//	C3  The decision depends on one reading only. A process that starts while a clock is wrong behaves like a
//	    process that started earlier.
//	C4  A long round trip does not count as skew.
//	C5  The time that a test clock adds does not affect the comparison: the real clocks are compared.
//
// # What it cannot detect
//
// Two clocks that are wrong by the same amount agree. If an instance takes its time from the host of PostgreSQL,
// there is one clock, not two.
//
// # Concurrency and failure
//
// All methods are safe for concurrent use. The package does no I/O and returns no errors.
package clock
