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
// instant, the request does not succeed before the period ends. If it says that no waiting helps, it never succeeds.
func TestDenial_WouldSucceedAt_IsTheFirstSuchInstant(t *testing.T) {
	t.Parallel()
	begin := time.Date(2026, 3, 31, 21, 0, 0, 0, time.UTC) // the month ends three hours later
	at := func(minute int) string { return begin.Add(time.Duration(minute) * time.Minute).Format(time.RFC3339) }
	rapid.Check(t, func(rt *rapid.T) {
		meter := rapid.SampledFrom([]string{"calls", "credits"}).Draw(rt, "meter") // only calls has an allowance
		subject := rapid.SampledFrom([]string{"", " subject=ann"}).Draw(rt, "subject")
		plan := "calls 20 every=month per-subject=9" + rapid.SampledFrom([]string{"", " overage=7", " rollover-max=30", " overflow=credits price=2"}).Draw(rt, "terms")
		lines := []string{"at " + at(0), "plan basic " + plan, "plan small calls 8 every=month", "plan daily calls 11 every=day", "tenant acme plan=basic"}
		minute := 0
		for i := range rapid.IntRange(1, 12).Draw(rt, "requests") {
			amount, soon := rapid.IntRange(1, 15).Draw(rt, "amount"), minute+rapid.IntRange(1, 100).Draw(rt, "from")
			on := rapid.SampledFrom([]string{meter, meter, "calls", "credits"}).Draw(rt, "on")
			switch rapid.IntRange(0, 4).Draw(rt, "request") {
			case 0:
				until := soon + rapid.IntRange(1, 100).Draw(rt, "until")
				lines = append(lines, fmt.Sprintf("grant acme %s %d id=g%d from=%s until=%s", on, amount, i, at(soon), at(until)))
			case 1:
				until := minute + rapid.IntRange(1, 100).Draw(rt, "until")
				lines = append(lines, fmt.Sprintf("grant acme %s %d id=g%d until=%s", on, amount, i, at(until)))
			case 2:
				lines = append(lines, fmt.Sprintf("hold acme %s %d id=h%d lasts=%dm%s", on, amount, i, soon-minute, subject))
			case 3:
				minute++ // two changes of a tenant have different instants
				lines = append(lines, "at "+at(minute), rapid.SampledFrom([]string{
					"tenant acme plan=small", "tenant acme plan=basic", "tenant acme plan=small apply=now", "tenant acme plan=basic apply=now",
					"tenant acme plan=daily apply=now", "tenant acme plan=daily from=" + at(soon+1), "tenant acme plan=small from=" + at(soon+1),
					"plan basic " + strings.Replace(plan, "20", "35", 1), "plan basic " + strings.Replace(plan, "20", "5", 1) + " apply=now",
					"plan small calls 30 every=month", "plan small calls 30 every=day apply=now",
				}).Draw(rt, "change"))
			default:
				minute += rapid.IntRange(0, 20).Draw(rt, "wait")
				lines = append(lines, "at "+at(minute), fmt.Sprintf("debit acme %s %d%s", on, amount, subject))
			}
		}
		verb := rapid.SampledFrom([]string{"debit acme", "hold acme"}).Draw(rt, "verb")
		items := fmt.Sprintf("%s %d", meter, rapid.IntRange(1, 40).Draw(rt, "asked"))
		if rapid.Bool().Draw(rt, "two items?") {
			other := map[string]string{"calls": "credits", "credits": "calls"}[meter]
			items += fmt.Sprintf(" %s %d", other, rapid.IntRange(1, 15).Draw(rt, "of the other"))
		}
		asked := fmt.Sprintf("%s %s id=asked%s", verb, items, subject)
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
		then, reset := now[where+1], now[where-1]
		instants := []string{}
		for m := minute + 1; m <= minute+250; m++ { // everything happens at a full minute
			instants = append(instants, at(m))
		}
		for day := range 62 {
			instants = append(instants, time.Date(2026, time.April, 1+day, 0, 0, 0, 0, time.UTC).Format(time.RFC3339))
		}
		for month := time.June; month <= time.July; month++ {
			instants = append(instants, time.Date(2026, month, 1, 0, 0, 0, 0, time.UTC).Format(time.RFC3339))
		}
		slices.Sort(instants)
		for _, named := range slices.Compact(instants) {
			if named <= at(minute) {
				continue
			}
			do("at " + named)
			if said := do("try " + asked); said[0] != "ok" {
				require.NotEqual(rt, then, formatted(named), "at %s %s: %v\n%s", named, asked, said, strings.Join(lines, "\n"))
				continue
			}
			soon := reset == "never" || formatted(named) <= reset
			if then != formatted(named) && (then != "never" || soon || now[0] == "credits_exhausted") {
				rt.Fatalf("%s succeeds at %s; it was said: %v\n%s", asked, named, now, strings.Join(lines, "\n"))
			}
			require.Equal(rt, "ok", do(asked)[0])
			return
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
