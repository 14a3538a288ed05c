// Package encoding appends the answers of the spending endpoints as JSON. They are most of the traffic, and written by hand they cost no allocation.
// A test in package httpapi compares each with the JSON of its generated type. All other answers are marshalled.
//
// There is no clock, no state and no failure: each function returns the bytes it was given with its value behind them.
package encoding
