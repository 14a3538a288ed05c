package model

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/quotasvc/quotasvc/internal/ledger"
)

// A denial names the first instant at which the same debit or hold succeeds if nothing else happens. If it names no
// instant, the request does not succeed before the period ends.
func TestDenial_WouldSucceedAt_IsTheFirstSuchInstant(t *testing.T) {
	t.Parallel()
	at := func(minute int) string {
		return time.Date(2026, 3, 31, 21, minute, 0, 0, time.UTC).Format(time.RFC3339)
	}
	const end = 3 * 60 // the month ends three hours after the story begins
	rapid.Check(t, func(rt *rapid.T) {
		meter := rapid.SampledFrom([]string{"calls", "credits"}).Draw(rt, "meter") // only calls has an allowance
		subject := rapid.SampledFrom([]string{"", " subject=ann"}).Draw(rt, "subject")
		lines := []string{"at " + at(0), "plan basic calls 20 every=month per-subject=9", "tenant acme plan=basic"}
		minute := 0
		for i := range rapid.IntRange(1, 12).Draw(rt, "requests") {
			amount, soon := rapid.IntRange(1, 15).Draw(rt, "amount"), minute+rapid.IntRange(1, 100).Draw(rt, "from")
			switch rapid.IntRange(0, 3).Draw(rt, "request") {
			case 0:
				until := soon + rapid.IntRange(1, 100).Draw(rt, "until")
				lines = append(lines, fmt.Sprintf("grant acme %s %d id=g%d from=%s until=%s", meter, amount, i, at(soon), at(until)))
			case 1:
				until := minute + rapid.IntRange(1, 100).Draw(rt, "until")
				lines = append(lines, fmt.Sprintf("grant acme %s %d id=g%d until=%s", meter, amount, i, at(until)))
			case 2:
				lines = append(lines, fmt.Sprintf("hold acme %s %d id=h%d lasts=%dm%s", meter, amount, i, soon-minute, subject))
			default:
				minute += rapid.IntRange(0, 20).Draw(rt, "wait")
				lines = append(lines, "at "+at(minute), fmt.Sprintf("debit acme %s %d%s", meter, amount, subject))
			}
		}
		verb := rapid.SampledFrom([]string{"debit acme", "hold acme"}).Draw(rt, "verb")
		asked := fmt.Sprintf("%s %s %d id=asked%s", verb, meter, rapid.IntRange(1, 40).Draw(rt, "asked"), subject)
		s := &scenario{
			t: t, rt: rt, plans: map[string][]ledger.PlanVersion{}, meters: map[string]bool{}, tenants: map[string]*Memory{}, suspended: map[string]bool{},
		}
		do := func(line string) []string {
			s.line++
			said, err := s.do(strings.Fields(line))
			require.NoError(rt, err, "%s", line)
			return strings.Fields(said)
		}
		for _, line := range lines {
			do(line)
		}
		now := do("try " + asked)
		where := slices.Index(now, "would-succeed")
		if where < 0 {
			return // the request succeeds, or the meter is unknown
		}
		then := now[where+1]
		for m := minute + 1; m <= end; m++ { // everything happens at a full minute
			named, passes := at(m), false
			do("at " + named)
			for _, verb := range []string{"try ", ""} {
				if verb == "" && !passes {
					break // if the line is not a dry run, its denial may be stored
				}
				said := do(verb + asked)
				if passes = said[0] == "ok"; passes != (formatted(named) == then) {
					rt.Fatalf("at %s %s: %v; it must succeed at %s\n%s", named, asked, said, then, strings.Join(lines, "\n"))
				}
			}
			if passes {
				return
			}
		}
		require.EqualValues(rt, "never", then, "%s must succeed at %s\n%s", asked, then, strings.Join(lines, "\n"))
	})
}

// formatted returns an instant in the format of answers. If text is not an instant, it returns the error's text.
func formatted(text string) string {
	at, err := parseInstant(text)
	if err != nil {
		return err.Error()
	}
	return formatInstant(at)
}
