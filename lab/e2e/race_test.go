//go:build race

package e2e

// raceDetector is true if the race detector is on. It slows the program down so much that two instances have too
// little CPU time, with or without Redis.
const raceDetector = true
