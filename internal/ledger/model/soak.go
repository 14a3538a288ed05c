package model

import (
	"os"
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// soakEvery is the time between two progress lines of a soak.
const soakEvery = 15 * time.Second

// SoakSteps returns the number of steps in the environment variable, 0 when it is not set.
func SoakSteps(t *testing.T, variable string) int {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return 0
	}
	steps, err := strconv.Atoi(text)
	if err != nil || steps < 1 {
		t.Fatalf("%s is %q: it must be a number of steps", variable, text)
	}
	return steps
}

// RunPrograms runs random programs. If wanted is 0, it runs at most `most` programs. Otherwise it runs programs until
// they have made wanted steps in total. program returns its number of steps.
func RunPrograms(t *testing.T, most, wanted int, program func(*rapid.T) int) {
	t.Helper()
	started := time.Now()
	reported, programs, steps := started, 0, 0
	report := func() {
		took := time.Since(started)
		t.Logf("%d programs, %d steps in %s, %.0f steps/s", programs, steps, took.Round(time.Second), float64(steps)/took.Seconds())
	}
	enough := func() bool { return wanted > 0 && steps >= wanted || wanted == 0 && programs >= most }
	for programs == 0 || wanted > 0 && !enough() {
		rapid.Check(t, func(rt *rapid.T) {
			if enough() {
				return
			}
			steps += program(rt)
			programs++
			if wanted > 0 && time.Since(reported) > soakEvery {
				reported = time.Now()
				report()
			}
		})
	}
	report()
}
