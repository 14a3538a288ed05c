//go:build race

package e2e

// raceDetector reports whether the tests run with the race detector. The race detector slows the program down so much
// that two instances have too little CPU time, with or without Redis.
const raceDetector = true
