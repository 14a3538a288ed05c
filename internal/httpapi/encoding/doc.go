// Package encoding appends the answers of the spending endpoints as JSON. These answers are most of the traffic, so
// this code is written by hand and does not allocate memory. A test in package httpapi compares each answer with the
// JSON of its generated type. All other answers are marshalled.
//
// The functions have no clock and no state, and they cannot fail. Each function appends its value to the bytes that
// it gets, and returns the result.
package encoding
