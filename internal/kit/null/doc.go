// Package null converts zero values to null, the value of an absent column in SQL and of an absent member in JSON.
// Instants have functions of their own in package period.
//
// Clock, concurrency, failure. The functions are pure, and none of them can fail.
package null
