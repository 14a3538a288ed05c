//go:build !race

package e2e

// raceDetector is true if the race detector is on.
const raceDetector = false
