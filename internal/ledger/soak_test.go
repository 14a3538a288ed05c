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

// runPrograms runs random programs: as many as rapid is told to, or until they had as many steps as are wanted together. A program
// returns how many steps it had.
func runPrograms(t *testing.T, wanted int, program func(*rapid.T) int) {
	t.Helper()
	started := time.Now()
	said, programs, steps := started, 0, 0
	report := func() {
		took := time.Since(started)
		t.Logf("%d programs, %d of %d steps, %s, %.0f steps/s", programs, steps, wanted, took.Round(time.Second), float64(steps)/took.Seconds())
	}
	for steps == 0 || steps < wanted {
		rapid.Check(t, func(rt *rapid.T) {
			if steps >= wanted && wanted > 0 {
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
