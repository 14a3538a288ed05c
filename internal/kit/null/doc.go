// Package null converts between zero values of Go and NULL of SQL.
//
// Clock, concurrency, failure. The functions are pure, and none of them can fail.
package null
