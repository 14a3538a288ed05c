//go:build !race

package e2e

// raceDetector reports whether the race detector is on.
const raceDetector = false
