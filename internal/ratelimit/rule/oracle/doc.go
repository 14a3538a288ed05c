// Package oracle is a second implementation of the limits' arithmetic, for tests. It uses exact fractions of tokens
// and lists of charges instead of units and counters. It repeats no integer arithmetic of package rule, and it finds
// wait times by search instead of a formula. Tests compare it with package rule, with the script and with local
// decisions.
//
// An Oracle is not safe for concurrent use. Times are in microseconds; callers pass the clock.
package oracle
