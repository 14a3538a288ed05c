//go:build race

package e2e

// raceDetector reports whether the race detector is on. It leaves two instances no core, with Redis and without it.
const raceDetector = true
