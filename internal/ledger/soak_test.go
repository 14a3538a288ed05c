package ledger

import (
	"os"
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// soakEvery is how often a soak says how far it is.
const soakEvery = 15 * time.Second

// soakSteps is how many steps a soak wants, as the environment variable says; 0 = this is no soak.
func soakSteps(t *testing.T, variable string) int {
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

// runPrograms runs random programs: most of them at most, or until they had as many steps as are wanted together. A program returns
// how many steps it had.
func runPrograms(t *testing.T, most, wanted int, program func(*rapid.T) int) {
	t.Helper()
	started := time.Now()
	said, programs, steps := started, 0, 0
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
			if wanted > 0 && time.Since(said) > soakEvery {
				said = time.Now()
				report()
			}
		})
	}
	report()
}
