package model

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/ledger"
)

// These tests tell what a change of the terms does to a customer who has used some of its allowance. Each case is a
// list of lines. A line begins with the day and the time. The customer signs up on plan "small" on day 1 at 00:00.
//
//	use N [as KEY]        a debit of N units; "use all" takes what it can get
//	hold N as KEY         reserves N units for an hour
//	capture KEY N         charges N of the reserved units and releases the rest
//	release KEY           gives all reserved units back
//	refund KEY            gives all units of a debit or a capture back
//	grant N               units that the customer has bought; they never end
//	now PLAN [...]        a change that applies at once: prorate, reset, add, own=N (another amount), anchor=HOURS
//	next PLAN [...]       the same for the next period
//	soon HOURS PLAN [...] a change that applies at once after some hours
//
// After "->" comes what must be true then: "charged N" is the number of units that the debit got, other words are sums
// of the balance.
func TestChanges_FollowTheTerms(t *testing.T) {
	t.Parallel()
	cap50 := Terms{amount: 100, day: true, overage: true, overageCap: new(int64(50))}
	preserved := cap50
	preserved.preserve = true
	hour := cap50
	hour.day = false
	twice := cap50
	twice.amount = 200
	day := func(n int64) Terms { return Terms{amount: n, day: true} }
	trial := Terms{amount: 100, once: true, lasts: 14 * 24 * time.Hour}
	tests := []struct {
		name         string
		small, large Terms
		lines        string
	}{
		// H1: a cap of overage holds, however often the terms change.
		{"cap of overage: plan to and fro", cap50, cap50, `
			1 09:00 use all        -> charged 150 overage 50
			1 10:00 now large      -> left 0
			1 10:01 use all        -> charged 0
			1 11:00 now small
			1 11:01 use all        -> charged 0
			1 12:00 now large prorate
			1 12:01 use all        -> charged 0 overage 50 used 100`},
		{"cap of overage: one unit more and back", cap50, cap50, `
			1 09:00 use all           -> charged 150
			1 10:00 now small own=101 -> left 1
			1 10:01 use all           -> charged 1
			1 11:00 now small         -> left 0 short 1
			1 11:01 use all           -> charged 0 overage 50`},
		{"cap of overage: anchor there and back", cap50, cap50, `
			1 09:00 use all            -> charged 150
			1 10:00 now small anchor=5
			1 10:01 use all            -> charged 0
			1 11:00 now small          -> left 0
			1 11:01 use all            -> charged 0`},
		{"cap of overage: upgrade with the same cap", cap50, twice, `
			1 09:00 use all   -> charged 150
			1 10:00 now large -> left 100
			1 10:01 use all   -> charged 100 overage 50`},
		{"cap of overage: another interval and back", cap50, hour, `
			1 09:30 use all   -> charged 150
			1 09:40 now large -> left 0 before 50
			1 09:41 use all   -> charged 0
			1 09:50 now small -> left 0 before 50
			1 09:51 use all   -> charged 0
			2 00:01 use all   -> charged 150`},
		{"cap of overage: what is owed counts once", preserved, preserved, `
			1 09:00 use all   -> charged 150
			1 10:00 now large
			1 10:01 use all   -> charged 0
			2 00:01           -> overage 0 left 50`},

		// H4: a change of the anchor gives no allowance before the open period ends, and then a share.
		{"anchor: one short day with its share", day(100), day(100), `
			1 12:30 use all             -> charged 100
			1 12:30 now small anchor=13
			1 13:01 use all             -> charged 0
			2 00:00                     -> left 54 granted 54
			2 00:01 use all             -> charged 54
			2 13:00                     -> left 100`},
		{"anchor: changed each hour", day(100), day(100), `
			1 12:30 use all             -> charged 100
			1 13:30 now small anchor=14
			1 14:30 now small anchor=15
			1 15:30 now small anchor=16
			1 16:30 use all             -> charged 0
			2 00:01 use all             -> charged 66`},
		{"anchor: there and back", day(100), day(100), `
			1 12:30 use 40
			1 13:00 now small anchor=14
			1 14:30 now small            -> left 60
			2 00:00                      -> left 100`},

		// H5: units that were only reserved, or that come back, are never lost.
		{"held: upgrade, release", day(1000), day(5000), `
			1 09:30 hold 600 as job
			1 10:00 now large       -> left 4400
			1 10:01 release job     -> left 5000 used 0`},
		{"held: upgrade, captured in part", day(1000), day(5000), `
			1 09:30 hold 600 as job
			1 10:00 now large
			1 10:01 capture job 100 -> left 4900 used 100`},
		{"held: upgrade, the hold expires", day(1000), day(5000), `
			1 09:00 hold 600 as job
			1 09:30 now large
			1 10:01                 -> left 5000`},
		{"held: one unit more, release", day(1000), day(1000), `
			1 09:00 hold 600 as job
			1 09:30 now small own=1001
			1 09:31 release job     -> left 1001`},
		{"held: another anchor, release", day(1000), day(1000), `
			1 09:00 hold 600 as job
			1 09:30 now small anchor=1
			1 09:31 release job     -> left 1000`},
		{"drawn: upgrade, refund", day(1000), day(5000), `
			1 09:00 use 600 as work
			1 10:00 now large       -> left 4400
			1 10:01 refund work     -> left 5000`},
		{"held: downgrade, release makes up for the missing units first", day(1000), day(500), `
			1 09:00 hold 600 as job
			1 09:30 now large       -> left 0 short 100 amended -400
			1 09:31 capture job 450 -> left 50 short 0 amended -500`},
		{"held: from an hour to a day, release", Terms{amount: 50}, day(500), `
			1 09:10 use 20 as work
			1 09:20 hold 30 as job
			1 09:30 now large       -> left 450 carried 50
			1 09:31 release job     -> left 480 carried 20
			1 09:32 refund work     -> left 500 carried 0`},
		{"held: from a day to an hour, more was drawn than the hour has", day(500), Terms{amount: 50}, `
			1 09:10 use 200 as work
			1 09:20 hold 30 as job
			1 09:30 now large       -> left 0 carried 230 short 180
			1 09:31 release job     -> left 0 carried 200 short 150
			1 09:32 refund work     -> left 50 carried 0 short 0
			1 10:00                 -> left 50`},
		{"drawn: what an earlier hour drew counts only in the day", Terms{amount: 50}, day(500), `
			1 08:10 use 50
			1 09:10 use 10
			1 09:30 now large       -> left 440 carried 60
			1 09:40 now small       -> left 40 carried 10
			1 10:00 next large
			1 11:00                 -> left 440 carried 60`},

		// M3: the period goes on, with all that was used in it.
		{"period goes on: less than was used", day(1000), day(500), `
			1 09:00 use 600
			1 10:00 now large -> left 0 used 600 short 100`},
		{"period goes on: one unit more", day(1000), day(1001), `
			1 09:00 use 790
			1 10:00 now large -> left 211 used 790 amended 1`},
		{"period goes on: there and back leaves no trace", day(1000), day(10), `
			1 09:00 use 600
			1 10:00 now large -> left 0
			1 11:00 now small -> left 400 used 600 amended 0`},
		{"prorated: each amount counts for its time", day(240), day(480), `
			1 06:00 now large prorate -> left 420
			1 12:00 now small prorate -> left 300
			1 18:00 use 300           -> left 0
			1 18:00 now small own=0 prorate -> left 0 short 0
			2 00:00                   -> left 0`},
		{"prorated: another interval counts from then on, less by what was drawn", Terms{amount: 10}, day(240), `
			1 05:30 use 10
			1 06:30 use 4
			1 06:30 hold 2 as job
			1 12:00 now large prorate -> left 106 carried 14`},

		// M4: a reset gives the whole allowance anew, also on the same plan.
		{"reset on the same plan", cap50, cap50, `
			1 09:00 use all as work -> charged 150
			1 10:00 now small reset -> left 100 overage 50 used 100
			1 10:01 refund work     -> left 100 overage 0 expired 100
			1 10:02 use all         -> charged 150`},
		{"reset: the rest of the old allowance expires", day(100), day(300), `
			1 09:00 use 60
			1 10:00 now large reset -> left 300 expired 40`},
		{"add: the rest of the old allowance stays until the period ends", day(100), day(300), `
			1 09:00 use 60 as work
			1 10:00 now large add   -> left 340 expired 0
			1 10:01 refund work     -> left 400
			1 10:02 now small       -> left 200
			1 10:03 use 150         -> left 50
			2 00:00                 -> left 100 expired 0`},
		{"add: it stays until the end that the old period would have had", day(100), Terms{amount: 30}, `
			1 09:10 use 60
			1 09:20 now large add   -> left 70 carried 0
			1 10:00                 -> left 70
			1 23:59                 -> left 70
			2 00:00                 -> left 30`},
		{"add: use of a period that had ended before counts in a longer one", hour, Terms{amount: 200, day: true}, `
			1 09:10 use 60
			1 10:10 use 30
			1 10:20 now small add -> left 170
			1 10:30 now large     -> left 210 carried 60`},
		{"add: what it let stay, after a change of the anchor", day(100), Terms{amount: 30}, `
			1 09:10 use 60
			1 09:15 now small anchor=1
			1 09:20 now small add -> left 140
			1 09:30 now large     -> left 70
			2 00:00               -> left 30`},

		// M6: an allowance once keeps its rest until its own end, whatever plan follows.
		{"trial: an upgrade leaves its rest", trial, day(1000), `
			1 09:00 use 10
			1 10:00 next large -> left 1090 carried 0
			1 11:00 use 300    -> left 790
			15 00:00           -> left 1000`},
		{"trial: an upgrade that applies at once", trial, day(1000), `
			1 10:00 now large  -> left 1100
			1 11:00 now small  -> left 100
			1 12:00 now large  -> left 1100
			14 23:59           -> left 1100
			15 00:00           -> left 1000`},
		{"trial: another amount", trial, trial, `
			1 09:00 use 60
			1 10:00 now small own=50  -> left 0 short 0
			1 11:00 now small own=150 -> left 90
			15 00:00                  -> left 0 expired 90
			15 01:00 now small        -> left 0`},
		{"trial: each plan gives its own, once", trial, Terms{amount: 7, once: true}, `
			1 10:00 now large -> left 107
			1 11:00 now small -> left 107
			1 12:00 now large -> left 107`},

		// Changes that lie in the future act when they come.
		{"future: a change of the amount", day(100), day(300), `
			1 09:00 soon 3 large -> left 100
			1 09:01 use 60       -> left 40
			1 12:00              -> left 240`},
		{"future: a change that applies now leaves it", day(100), day(300), `
			1 09:00 soon 3 large
			1 10:00 now small own=120 -> left 120
			1 12:00              -> left 300`},
		{"bought units stay", day(100), Terms{amount: 30}, `
			1 09:00 grant 25
			1 09:10 use 110   -> left 15
			1 09:20 now large -> left 15 carried 100`},
	}
	for _, test := range tests {
		t.Run(strings.ReplaceAll(test.name, " ", "_"), func(t *testing.T) {
			t.Parallel()
			c := newCustomer(test.small, test.large)
			for line := range strings.Lines(test.lines) {
				if line = strings.TrimSpace(line); line != "" {
					c.tell(t, line)
				}
			}
		})
	}
}

// customer is a tenant of the model that uses the meter calls.
type customer struct {
	m       *Model
	begin   time.Time
	serial  int
	charged int64 // units of the last debit
}

var calls = ledger.BalanceKey{Tenant: Tenant, Meter: "calls"}

// newCustomer returns a customer on plan small.
func newCustomer(small, large Terms) *customer {
	begin := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	c := &customer{m: newModel(begin, begin), begin: begin}
	for plan, terms := range map[string]Terms{"small": small, "large": large} {
		c.m.plans[plan] = []planVersion{{at: begin.Add(-time.Hour), meters: map[string]Terms{"calls": terms}}}
	}
	c.m.plans["none"] = []planVersion{{at: begin.Add(-time.Hour)}}
	c.m.Changes = []PlanChange{{at: begin, Plan: "small"}}
	return c
}

// do carries out a request, and returns the answer.
func (c *customer) do(act func(m *Model, op *operation) string, key string) string {
	c.serial++
	if key == "" {
		key = fmt.Sprint("op", c.serial)
	}
	return c.m.apply(key, fmt.Sprint(c.serial), false, act)
}

// use debits up to n units, and returns the charged units.
func (c *customer) use(n int64, key string) int64 {
	d := ledger.Debit{Tenant: Tenant, Items: []ledger.Item{{Meter: "calls", Amount: n}}, Mode: ledger.ModeBestEffort}
	answer := c.do(func(m *Model, op *operation) string { return m.debit(op, &d) }, key)
	c.charged = 0
	_, _ = fmt.Sscanf(answer, "ok [calls %d of", &c.charged) // a refusal has no number
	return c.charged
}

func (c *customer) hold(n int64, id string) string {
	h := ledger.Hold{Tenant: Tenant, HoldID: id, Items: []ledger.Item{{Meter: "calls", Amount: n}}, TTL: time.Hour}
	return c.do(func(m *Model, _ *operation) string { return m.hold(&h) }, "")
}

// end captures n units of a hold, and releases the rest. It releases all units if n is 0.
func (c *customer) end(id string, n int64) string {
	h := ledger.HoldChange{Tenant: Tenant, HoldID: id, Action: ledger.ActionRelease}
	if n > 0 {
		h.Action, h.Items, h.Final = ledger.ActionCapture, []ledger.Item{{Meter: "calls", Amount: n}}, true
	}
	return c.do(func(m *Model, op *operation) string { return m.change(op, &h) }, "captured "+id)
}

func (c *customer) refund(key string) string {
	r := ledger.Refund{Tenant: Tenant, Key: fmt.Sprint("refund", c.serial), OperationID: key}
	return c.do(func(m *Model, _ *operation) string { return m.refund(&r) }, "")
}

func (c *customer) grant(n int64) string {
	g := ledger.Grant{
		Tenant: Tenant, Key: fmt.Sprint("grant", c.serial), Meter: "calls", Amount: n, Source: ledger.SourceTopup,
	}
	return c.do(func(m *Model, _ *operation) string { return m.issue(&g) }, "")
}

// change puts the customer on other terms, now or after some time.
func (c *customer) change(p PlanChange) {
	p.at = c.m.Now.Add(p.After)
	at := 0
	for at < len(c.m.Changes) && !c.m.Changes[at].at.After(p.at) {
		at++
	}
	c.m.Changes = slices.Insert(slices.Clip(c.m.Changes), at, p)
}

// tell carries out a line, and compares the balance with what the line expects.
func (c *customer) tell(t *testing.T, line string) {
	does, expected, _ := strings.Cut(line, "->")
	words := strings.Fields(does)
	day, err := strconv.Atoi(words[0])
	require.NoError(t, err, line)
	clock, err := time.Parse("15:04", words[1])
	require.NoError(t, err, line)
	c.m.Now = c.begin.Add(time.Duration(day-1)*24*time.Hour + clock.Sub(clock.Truncate(24*time.Hour)))
	if len(words) > 2 {
		c.obey(t, line, words[2], words[3:])
	}
	b := c.m.touch(calls)
	sums := map[string]int64{
		"charged": c.charged, "left": b.remaining(), "used": b.used, "overage": b.overage, "granted": b.granted,
		"amended": b.amended, "expired": b.expired, "carried": b.carried, "before": b.before,
		"short": b.allowances[b.current].short,
	}
	for want := strings.Fields(expected); len(want) > 1; want = want[2:] {
		got, known := sums[want[0]]
		require.True(t, known, "%s: %s", line, want[0])
		require.Equal(t, want[1], fmt.Sprint(got), "%s: %s", line, want[0])
	}
}

// obey carries out the verb of a line.
func (c *customer) obey(t *testing.T, line, verb string, words []string) {
	number := func(text string) int64 {
		if text == "all" {
			return 1_000_000
		}
		n, err := strconv.ParseInt(text, 10, 64)
		require.NoError(t, err, line)
		return n
	}
	answer := "ok"
	switch verb {
	case "use":
		key := ""
		if len(words) > 1 {
			key = words[2]
		}
		c.use(number(words[0]), key)
	case "hold":
		answer = c.hold(number(words[0]), words[2])
	case "capture":
		answer = c.end(words[0], number(words[1]))
	case "release":
		answer = c.end(words[0], 0)
	case "refund":
		answer = c.refund(words[0])
	case "grant":
		answer = c.grant(number(words[0]))
	case "now", "next", "soon":
		p := PlanChange{Now: verb != "next"}
		if verb == "soon" {
			p.After, words = time.Duration(number(words[0]))*time.Hour, words[1:]
		}
		has := func(word string) bool { return slices.Contains(words, word) }
		p.Plan, p.Prorate, p.Reset, p.Add = words[0], has("prorate"), has("reset"), has("add")
		for _, word := range words[1:] {
			name, value, _ := strings.Cut(word, "=")
			switch name {
			case "own":
				p.Own = map[string]int64{"calls": number(value)}
			case "anchor":
				p.Shift = time.Duration(number(value)) * time.Hour
			}
		}
		c.change(p)
	default:
		require.Fail(t, "unknown verb", line)
	}
	require.True(t, strings.HasPrefix(answer, "ok"), "%s: %s", line, answer)
}
