// Package oracle is a second implementation of the limits' arithmetic, for tests. It uses exact fractions of tokens
// and lists of charges instead of units and counters. It has none of package rule's integer arithmetic, and it finds
// times to wait by a search instead of a formula. Tests compare it with package rule, with the limits script and with
// the decisions in a process.
//
// An Oracle is not safe for concurrent use. Times are in microseconds; callers pass the clock.
package oracle
