// Package encoding appends the answers of the spending endpoints as JSON. These answers are most of the traffic, and
// this hand-written code needs no allocation. A test in package httpapi compares each answer with the JSON of its
// generated type. All other answers are marshalled.
//
// The functions have no clock and no state, and they cannot fail. Each returns the given bytes with its value
// appended.
package encoding
