//go:build race

package main

// raceDetector reports whether the race detector is on. It leaves two instances no core, with Redis and without it.
const raceDetector = true
