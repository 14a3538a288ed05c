// Package clock says what time it is when two clocks may disagree: PostgreSQL's and the instance's own.
//
// # Terms
//
//	reading   what PostgreSQL's clock said, and what the instance's clock said before it was asked and after it answered
//	skew      PostgreSQL's clock minus the instance's, as far as a reading proves it: 0 if PostgreSQL's lies between the two
//	agree     the skew is at most SkewMax, in either direction
//	decision  the instant that decisions, periods and expiries go by
//	ahead     what a test clock adds to the decision (package testclock); 0 in production
//
// # Invariants
//
//	C1  While the clocks agree, the decision is PostgreSQL's clock. So all instances decide by the same clock.
//	C2  While they do not, the decision is the earlier of the two. One clock alone never closes a period and never lets a grant expire.
//	C3  The decision depends on one reading only. A process that starts during a step behaves like one that was there before.
//	C4  A round trip, however long it takes, is no skew.
//	C5  What a test clock adds has no part in the comparison: the clocks themselves are compared.
//
// # What it cannot see
//
// Two clocks that are wrong by the same amount agree. Instances that take their time from the host of PostgreSQL have one clock, not two.
//
// # Concurrency and failure
//
// All methods are safe for concurrent use. Nothing here does I/O or fails.
package clock
