// Package clock compares PostgreSQL's clock with the instance's clock. It returns the time that decisions use, even
// if the two clocks disagree.
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
//	C1  While the clocks agree, the decision is PostgreSQL's time. So all instances decide by the same clock.
//	C2  While the clocks disagree, the decision is the earlier time. So one wrong clock alone can neither close a
//	    period nor expire a grant.
//	C3  The decision depends only on one reading. A process that starts while a clock is wrong decides in the same way
//	    as a process that started earlier.
//	C4  A query that takes long does not count as skew.
//	C5  The time that a test clock adds does not affect the comparison: the real clocks are compared.
//
// # What it cannot detect
//
// If two clocks are wrong by the same amount, they agree. If an instance takes its time from the host of PostgreSQL,
// there is only one clock, and no error of it can be detected.
//
// # Concurrency and failure
//
// All methods are safe for concurrent use. The package does no I/O and returns no errors.
package clock
