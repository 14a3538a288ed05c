package model

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/quotasvc/quotasvc/internal/kit/period"
	"github.com/quotasvc/quotasvc/internal/ledger"
)

// years sends the same requests, over several years, to the calendar and to two Memories, which run package ledger.
// After every step all three must have the same balances.
type years struct {
	t      *rapid.T
	now    time.Time
	cal    *calendar
	rough  *Memory // batches of random size, rolls at random, lost commits and lost answers
	plain  *Memory // one request at a time, no rolls
	sticky bool
	serial int
	sent   []asked
}

// asked is a request with its key, so that it can be sent again.
type asked struct {
	id, body string
	call     func() *ledger.Call
	decide   func() (string, bool)
}

var yearMeters = []string{"a", "b", "c"}

func startYears(t *rapid.T) *years {
	y := &years{t: t, rough: newMemory(), plain: newMemory(), sticky: rapid.Bool().Draw(t, "sticky")}
	y.now = time.Date(2027, 11, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(rapid.IntRange(0, 150*24).Draw(t, "birth")) * time.Hour)
	y.cal = &calendar{
		plans: map[string][]ledger.PlanVersion{}, grants: map[string][]calendarGrant{}, debits: map[string][]calendarDebit{},
		answers: map[string]calendarAnswer{}, denied: map[string]bool{},
	}
	for _, plan := range []string{"p", "q"} {
		y.version(plan)
	}
	y.terms(y.moved("p"))
	return y
}

// moved returns terms with a plan, a time zone and an anchor.
func (y *years) moved(plan string) ledger.TenantTerms {
	zones := []string{"UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe"}
	zone, err := period.ParseZone(rapid.SampledFrom(zones).Draw(y.t, "zone"))
	require.NoError(y.t, err)
	anchor := time.Date(2027, 8, 31, 2, 30, 0, 0, zone).AddDate(0, 0, -rapid.IntRange(0, 3).Draw(y.t, "anchor")).UTC()
	return ledger.TenantTerms{Plan: plan, AnchorAt: anchor, Zone: zone}
}

// version adds a version of a plan to the calendar and both memories.
func (y *years) version(plan string) {
	v := ledger.PlanVersion{Version: int32(len(y.cal.plans[plan])) + 1, CreatedAt: y.now, Allowances: map[string]ledger.Allowance{}}
	for _, meter := range yearMeters {
		if rapid.IntRange(0, 3).Draw(y.t, "in plan?") == 0 {
			continue
		}
		a := ledger.Allowance{
			Amount: rapid.Int64Range(0, 30).Draw(y.t, "allowance"), Anchor: rapid.SampledFrom([]period.AnchorKind{period.Calendar, period.Tenant}).Draw(y.t, "anchor kind"),
			Every: rapid.SampledFrom([]period.Interval{period.Day, period.Week, period.Month, period.Month, period.Year, period.Once}).Draw(y.t, "every"),
		}
		if a.Every == period.Once && rapid.Bool().Draw(y.t, "trial?") {
			a.Lasts = time.Duration(rapid.IntRange(1, 60).Draw(y.t, "days")) * 24 * time.Hour
		}
		v.Allowances[meter] = a
	}
	y.cal.plans[plan] = append(y.cal.plans[plan], v)
	y.rough.Plans, y.plain.Plans = y.cal.plans, y.cal.plans
}

func (y *years) terms(row ledger.TenantTerms) {
	row.Since = y.now
	if rapid.IntRange(0, 3).Draw(y.t, "override?") == 0 {
		row.Overrides = map[string]int64{"a": rapid.Int64Range(0, 30).Draw(y.t, "own amount")}
	}
	y.cal.history = append(y.cal.history, row)
	y.rough.History, y.plain.History = y.cal.history, y.cal.history
}

// tick advances the clock: by up to 36 hours, by up to 100 days, or to a boundary. A boundary is the end of a period,
// the start or end of a grant, or a microsecond before one of these.
func (y *years) tick() {
	t := y.t
	switch rapid.IntRange(0, 3).Draw(t, "tick") {
	case 0:
		y.now = y.now.Add(time.Duration(rapid.IntRange(1, 36*3600).Draw(t, "seconds")) * time.Second)
	case 1:
		y.now = y.now.Add(time.Duration(rapid.IntRange(1, 100).Draw(t, "days")) * 24 * time.Hour)
	default:
		var ahead []time.Time
		for _, meter := range yearMeters {
			periods, pots := y.cal.state(meter, y.now)
			ahead = append(ahead, periods[len(periods)-1].end)
			for _, p := range pots {
				ahead = append(ahead, p.from, p.until)
			}
		}
		ahead = slices.DeleteFunc(ahead, func(at time.Time) bool { return !at.After(y.now) || !at.Before(period.Forever) })
		if len(ahead) == 0 {
			return
		}
		to := rapid.SampledFrom(ahead).Draw(t, "boundary")
		if rapid.Bool().Draw(t, "just before") && to.Add(-time.Microsecond).After(y.now) {
			to = to.Add(-time.Microsecond)
		}
		if to.Sub(y.now) < 500*24*time.Hour {
			y.now = to
		}
	}
}

func (y *years) request() asked {
	t := y.t
	y.serial++
	id := fmt.Sprint("op", y.serial)
	meter := func(i int) string { return yearMeters[i%len(yearMeters)] }
	if rapid.IntRange(0, 3).Draw(t, "kind") == 0 {
		g := ledger.Grant{
			Tenant: Tenant, Key: id, Meter: meter(rapid.IntRange(0, 2).Draw(t, "meter")), GrantID: fmt.Sprint("g", rapid.IntRange(0, 200).Draw(t, "grant")),
			Amount: rapid.Int64Range(1, 20).Draw(t, "amount"), Source: ledger.SourceTopup, Priority: new(int32(rapid.IntRange(9, 11).Draw(t, "priority"))),
		}
		switch rapid.IntRange(0, 3).Draw(t, "expires") {
		case 0:
			g.ExpiresAt = y.now.Add(time.Duration(rapid.IntRange(1, 90*24).Draw(t, "hours")) * time.Hour)
		case 1: // the grant ends at the end of the period
			periods, _ := y.cal.state(g.Meter, y.now)
			if end := periods[len(periods)-1].end; end.Before(period.Forever) {
				g.ExpiresAt = end
			}
		}
		if rapid.IntRange(0, 2).Draw(t, "pending?") == 0 {
			g.EffectiveAt = y.now.Add(time.Duration(rapid.IntRange(1, 60*24).Draw(t, "wait")) * time.Hour)
		}
		body := fmt.Sprintf("%s %s %d %d %s %s", g.Meter, g.GrantID, g.Amount, *g.Priority, g.EffectiveAt, g.ExpiresAt)
		return asked{
			id: id, body: body, call: func() *ledger.Call { c := g; return ledger.NewCall(&c) },
			decide: func() (string, bool) { return y.cal.grant(&g, y.now) },
		}
	}
	d := ledger.Debit{Tenant: Tenant, Key: id}
	first := rapid.IntRange(0, 2).Draw(t, "meter")
	r := asked{id: id}
	for i := range rapid.IntRange(1, 3).Draw(t, "items") {
		d.Items = append(d.Items, ledger.Item{Meter: meter(first + i), Amount: rapid.Int64Range(1, 12).Draw(t, "amount"), StoreDenial: y.sticky})
	}
	r.body, r.call = fmt.Sprint(d.Items), func() *ledger.Call { c := d; return ledger.NewCall(&c) }
	r.decide = func() (string, bool) { return y.cal.debit(&d, y.now) }
	return r
}

// shown returns an answer in the calendar's format, with the id of each grant from which units were drawn.
func shown(c *ledger.Call) string {
	r, ok := c.Answer.(*ledger.DebitResult)
	if !ok || c.Err != nil {
		return AnswerOf(c)
	}
	out := "ok"
	for _, item := range r.Items {
		var draws []string
		for _, d := range item.Draws {
			draws = append(draws, fmt.Sprintf("%s:%d", potOf(d.Grant), d.Amount))
		}
		out += fmt.Sprintf(" [%s %d from %s left %d]", item.Meter, item.Charged, strings.Join(draws, " "), item.Remaining)
	}
	return out
}

// batch sends new and repeated requests to the calendar and both memories.
func (y *years) batch() {
	t := y.t
	var batch []asked
	for range rapid.IntRange(1, 4).Draw(t, "batch") {
		if len(y.sent) > 0 && rapid.IntRange(0, 4).Draw(t, "again?") == 0 {
			batch = append(batch, rapid.SampledFrom(y.sent).Draw(t, "again"))
			continue
		}
		r := y.request()
		batch = append(batch, r)
		switch rapid.IntRange(0, 7).Draw(t, "twin or reuse") {
		case 0:
			batch = append(batch, r)
		case 1:
			other := y.request()
			made := other.call
			other.id, other.call = r.id, func() *ledger.Call { c := made(); c.ID.Key = r.id; return c }
			batch = append(batch, other)
		}
	}
	y.sent = append(y.sent, batch...)
	want := make([]string, len(batch))
	calls := make([]*ledger.Call, len(batch))
	for i, r := range batch {
		calls[i] = r.call()
	}
	for from := 0; from < len(calls); {
		to := from + rapid.IntRange(1, len(calls)-from).Draw(t, "cut")
		for i := from; i < to; i++ {
			want[i] = y.cal.ask(batch[i].id, batch[i].body, y.sticky, y.now, batch[i].decide)
			t.Logf("%s %s %s => %s", y.now.Format(time.RFC3339Nano), batch[i].id, batch[i].body, want[i])
		}
		y.runRough(calls[from:to])
		from = to
	}
	for i, r := range batch {
		alone := r.call()
		y.plain.run(t, []*ledger.Call{alone}, y.now, false)
		got := shown(alone)
		require.True(t, got == want[i], "%s alone: ledger %q, calendar %q", r.id, got, want[i])
		got = shown(calls[i])
		require.True(t, got == want[i], "%s in a batch: ledger %q, calendar %q", r.id, got, want[i])
	}
}

// runRough runs a batch whose transaction or whose answer may be lost (I8, I9, I11 of docs/proof.md).
func (y *years) runRough(calls []*ledger.Call) {
	t := y.t
	switch rapid.IntRange(0, 5).Draw(t, "crash") {
	case 0:
		before := y.rough.frozen()
		y.rough.run(t, calls, y.now, true)
		require.Equal(t, before, y.rough.frozen(), "a lost transaction has changed rows")
	case 1:
		y.rough.run(t, calls, y.now, false)
		before := y.rough.frozen()
		remembered, _ := ledger.KeyMonths(y.now)
		first := make([]string, len(calls))
		var again []*ledger.Call
		for i, c := range calls {
			first[i] = shown(c)
			// A denial that is not stored is decided again, after the rest of its batch.
			if lines := ledger.Remembered(y.rough.entries[c.ID], remembered); len(lines) > 0 && string(lines[0].Fingerprint) == string(c.Fingerprint[:]) {
				again = append(again, c)
			}
		}
		y.rough.run(t, again, y.now, false)
		for i, c := range calls {
			got := shown(c)
			require.True(t, got == first[i], "%s: first answer %q, answer to the retry %q", c.ID.Key, first[i], got)
		}
		require.Equal(t, before, y.rough.frozen(), "retries have changed rows")
		return
	}
	y.rough.run(t, calls, y.now, false)
	if !slices.ContainsFunc(calls, func(c *ledger.Call) bool { return c.Err == nil || y.rough.kept(c.ID) }) {
		// I11: all requests are refused. The first run may have processed due events. A second run changes nothing.
		before := y.rough.frozen()
		y.rough.run(t, calls, y.now, false)
		require.Equal(t, before, y.rough.frozen(), "refused requests have changed rows")
	}
}

// kept reports whether the memory has entries of the operation.
func (s *Memory) kept(id ledger.OperationID) bool { _, ok := s.entries[id]; return ok }

// frozen returns the stored rows as text. fmt prints maps in key order.
func (s *Memory) frozen() string { return fmt.Sprint(s.balances, s.grants, s.periods, len(s.entries)) }

// write advances a balance to now and stores it, in as many transactions as needed.
func (s *Memory) write(t *rapid.T, k ledger.BalanceKey, now time.Time) {
	for {
		b := s.read(k, now)
		next := b.Decide(nil)
		require.False(t, next.All, "advance %v: grants or terms were not read", k)
		s.store(t, b)
		if next.Done() {
			return
		}
	}
}

// journal returns the entries of a balance as text, without their numbers and the times at which they were written.
// The numbers and times differ between memories: rolls write entries earlier, and idle periods are not written at
// all.
func (s *Memory) journal(t *rapid.T, k ledger.BalanceKey) []string {
	lines, err := s.journalOf(k)
	require.NoError(t, err)
	out := make([]string, len(lines))
	for i, l := range lines {
		out[i] = fmt.Sprint(l.OperationID, l.Line, l.Kind, l.Grant, l.Amount, l.RemainingAfter, l.PeriodStart, l.EffectiveAt)
	}
	return out
}

// compare compares both memories with the calendar (I1, I2, I4, I5, I18, I19, I21, I23 of docs/proof.md). It compares
// the rows of each memory with its entries (I3, I6, I7), and the entries of both memories (I14, I15).
func (y *years) compare() {
	t := y.t
	y.rough.check(t)
	y.plain.check(t)
	for _, meter := range yearMeters {
		k := ledger.BalanceKey{Tenant: Tenant, Meter: meter}
		want := y.cal.describe(meter, y.now)
		for name, s := range map[string]*Memory{"rough": y.rough, "plain": y.plain} {
			b := s.read(k, y.now)
			require.NoError(t, b.AdvanceInMemory(nil), "read %v", k)
			if got := describeAll(t, s, b.Books[k]); got != want {
				t.Fatalf("meter %s at %s, calendar:\n%s\n%s memory:\n%s", meter, y.now.Format(time.RFC3339Nano), want, name, got)
			}
		}
	}
	if rapid.IntRange(0, 9).Draw(t, "journals?") > 0 {
		return
	}
	for _, meter := range yearMeters {
		k := ledger.BalanceKey{Tenant: Tenant, Meter: meter}
		for _, s := range []*Memory{y.rough, y.plain} {
			s.write(t, k, y.now)
		}
		require.Equal(t, y.plain.journal(t, k), y.rough.journal(t, k), "the entries of %s depend on batches, rolls or crashes", meter)
	}
}

// The random programs have every interval and anchor, zones with clock changes, and instants exactly on boundaries.
// They have years without use, plans that gain and lose meters, trials, and amounts for one tenant only. A soak has 1
// % of the steps in QUOTASVC_SOAK_STEPS, because the calendar computes everything from the beginning at each step.
func TestCalendar_Programs_AgreeWithLedger(t *testing.T) {
	t.Parallel()
	const steps = 20
	RunPrograms(t, 15, SoakSteps(t, "QUOTASVC_SOAK_STEPS")/100, func(t *rapid.T) int {
		y := startYears(t)
		for range steps {
			switch rapid.IntRange(0, 9).Draw(t, "step") {
			case 0, 1, 2:
				y.tick()
			case 3:
				y.rough.sweep(t, y.now)
			case 4:
				if rapid.IntRange(0, 1).Draw(t, "change?") == 0 {
					y.now = y.now.Add(time.Second)
					y.version(rapid.SampledFrom([]string{"p", "q"}).Draw(t, "plan"))
				}
			case 5:
				if rapid.IntRange(0, 1).Draw(t, "change?") == 0 {
					y.now = y.now.Add(time.Second)
					plan, last := rapid.SampledFrom([]string{"p", "q"}).Draw(t, "plan"), y.cal.history[len(y.cal.history)-1]
					next := ledger.TenantTerms{Plan: plan, AnchorAt: last.AnchorAt, Zone: last.Zone}
					if rapid.IntRange(0, 2).Draw(t, "moved?") == 0 {
						next = y.moved(plan)
					}
					y.terms(next)
				}
			default:
				y.batch()
			}
			y.compare()
		}
		return steps
	})
}
