//go:build !race

package main

// raceDetector reports whether the race detector is on.
const raceDetector = false
