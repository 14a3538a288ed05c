package ledger

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/quotasvc/quotasvc/internal/period"
)

// Scenarios are the ledger's rules as stories: testdata/scenarios has one file per rule, and its README.md explains the
// language. Each is told to the pure state machine with a clock that the story sets, twice: once with nobody but the story's
// own requests working off what is due, and once with a sweeper that has done so before every line. Both must come out alike.

// scenario is one story in progress.
type scenario struct {
	t       *testing.T
	rt      *rapid.T // memory reports broken constraints to it
	file    string
	line    int
	sweeps  bool
	now     time.Time
	plans   map[string][]planVersion
	meters  map[string]bool // true: denials are stored
	tenants map[string]*memory
}

func TestScenarios(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/scenarios/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".txt")
		for _, sweeps := range []bool{false, true} {
			how := map[bool]string{false: "/lazily", true: "/swept"}[sweeps]
			t.Run(name+how, func(t *testing.T) {
				t.Parallel()
				// A fuzz run of an empty input is one run without any randomness.
				rapid.MakeFuzz(func(rt *rapid.T) { tell(t, rt, file, sweeps) })(t, nil)
			})
		}
	}
}

// tell runs the file's lines. A line that does not come out as it says fails the test with file:line; the story goes on.
func tell(t *testing.T, rt *rapid.T, file string, sweeps bool) {
	in, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	s := &scenario{
		t: t, rt: rt, file: file, sweeps: sweeps, plans: map[string][]planVersion{}, meters: map[string]bool{}, tenants: map[string]*memory{},
	}
	checked := 0
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		s.line++
		text, _, _ := strings.Cut(lines.Text(), "#")
		command, want, expects := strings.Cut(text, "->")
		words := strings.Fields(command)
		if len(words) == 0 {
			continue
		}
		got, err := s.do(words)
		switch {
		case err != nil:
			s.fail("%v", err)
		case expects && !tells(got, strings.Fields(want)):
			s.fail("%s\n    expected: %s\n    got:      %s", strings.Join(words, " "), strings.TrimSpace(want), got)
		case !expects && strings.Contains(got, " "):
			s.fail("%s: has an answer (%s): say what is expected of it", strings.Join(words, " "), got)
		}
		if expects {
			checked++
		}
		for _, m := range s.tenants {
			m.check(rt)
		}
	}
	if err := lines.Err(); err != nil || checked == 0 {
		s.fail("a scenario without expectations (%v)", err)
	}
}

func (s *scenario) fail(format string, args ...any) {
	s.t.Helper()
	s.t.Errorf("%s:%d: %s", s.file, s.line, fmt.Sprintf(format, args...))
}

// tells says whether the answer begins with the expected words, and then has every further expected "name value" somewhere.
func tells(answer string, want []string) bool {
	got := strings.Fields(answer)
	if len(want) == 0 || len(want)%2 == 0 || got[0] != want[0] {
		return false
	}
	for i := 1; i < len(want); i += 2 {
		found := false
		for j := 1; j+1 < len(got); j += 2 {
			found = found || got[j] == want[i] && got[j+1] == want[i+1]
		}
		if !found {
			return false
		}
	}
	return true
}

// do performs one line and renders its answer: a word, then pairs of name and value.
func (s *scenario) do(words []string) (string, error) {
	named := map[string]string{}
	args := slices.DeleteFunc(slices.Clone(words[1:]), func(w string) bool {
		name, value, ok := strings.Cut(w, "=")
		if ok {
			named[name] = value
		}
		return ok
	})
	commands := map[string]struct {
		args int // at least
		run  func(args []string, named map[string]string) (string, error)
	}{
		"at": {1, s.at}, "meter": {1, s.meter}, "plan": {3, s.plan}, "tenant": {1, s.tenant}, "debit": {3, s.debit}, "grant": {3, s.grant},
		"balance": {2, s.balance}, "statement": {3, s.statement}, "entries": {2, s.entries}, "grants": {2, s.grants},
	}
	c, ok := commands[words[0]]
	if !ok || len(args) < c.args {
		return "", fmt.Errorf("no such command, or too few words: %s", strings.Join(words, " "))
	}
	if s.sweeps {
		for _, m := range s.tenants {
			(&program{t: s.rt, memory: m, now: s.now}).sweep()
		}
	}
	return c.run(args, named)
}

// parseInstant reads 2026-01-31T10:00Z, with seconds or without, or with an offset.
func parseInstant(text string) (time.Time, error) {
	for _, layout := range []string{"2006-01-02T15:04Z07:00", time.RFC3339Nano} {
		if t, err := time.Parse(layout, text); err == nil {
			return t.UTC(), nil
		}
	}
	return time.Time{}, fmt.Errorf("%q is no instant like 2026-01-31T10:00Z", text)
}

func formatInstant(t time.Time) string {
	switch {
	case t.IsZero() || !t.Before(period.Forever):
		return "never"
	case t.Second() == 0 && t.Nanosecond() == 0:
		return t.UTC().Format("2006-01-02T15:04Z")
	}
	return t.UTC().Format(time.RFC3339Nano)
}

// at INSTANT
func (s *scenario) at(args []string, _ map[string]string) (string, error) {
	now, err := parseInstant(args[0])
	if err == nil && now.Before(s.now) {
		err = fmt.Errorf("the clock cannot go back from %s", formatInstant(s.now))
	}
	if err != nil {
		return "", err
	}
	s.now = now
	return "ok", nil
}

// meter METER [denial_replay]
func (s *scenario) meter(args []string, _ map[string]string) (string, error) {
	s.meters[args[0]] = len(args) > 1 && args[1] == "denial_replay"
	return "ok", nil
}

// plan PLAN METER AMOUNT every=INTERVAL [anchor=calendar|tenant] [and METER AMOUNT ...]. A second such line for a plan is its next
// version, in force from now on for periods that begin later.
func (s *scenario) plan(args []string, named map[string]string) (string, error) {
	every, err := period.ParseInterval(named["every"])
	if err != nil {
		return "", err
	}
	anchor := period.Calendar
	if text, ok := named["anchor"]; ok {
		if anchor, err = period.ParseAnchorKind(text); err != nil {
			return "", err
		}
	}
	version := planVersion{version: int32(len(s.plans[args[0]])) + 1, createdAt: s.now, allowances: map[string]allowance{}}
	for at := 1; at+1 < len(args); at += 3 { // METER AMOUNT and
		amount, err := strconv.ParseInt(args[at+1], 10, 64)
		if err != nil {
			return "", err
		}
		version.allowances[args[at]] = allowance{amount: amount, every: every, anchor: anchor}
		s.meters[args[at]] = s.meters[args[at]] || false
	}
	s.plans[args[0]] = append(s.plans[args[0]], version)
	return "ok", nil
}

// tenant TENANT plan=PLAN [anchor=INSTANT] [zone=ZONE] signs a tenant up, or gives one another plan from the next period on.
func (s *scenario) tenant(args []string, named map[string]string) (string, error) {
	if len(s.plans[named["plan"]]) == 0 {
		return "", fmt.Errorf("there is no plan %q", named["plan"])
	}
	terms := tenantTerms{since: s.now, plan: named["plan"], anchorAt: s.now, zone: time.UTC}
	m, known := s.tenants[args[0]]
	if known {
		last := m.history[len(m.history)-1]
		terms.anchorAt, terms.zone = last.anchorAt, last.zone
	} else {
		m = newMemory()
		m.plans = s.plans
		s.tenants[args[0]] = m
	}
	var err error
	if text, ok := named["anchor"]; ok {
		if terms.anchorAt, err = parseInstant(text); err != nil {
			return "", err
		}
	}
	if text, ok := named["zone"]; ok {
		if terms.zone, err = period.ParseZone(text); err != nil {
			return "", err
		}
	}
	m.history = append(m.history, terms)
	return "ok", nil
}

// submit sends one request of a tenant as a batch of its own.
func (s *scenario) submit(tenant string, c *call) error {
	m, ok := s.tenants[tenant]
	if !ok {
		return fmt.Errorf("there is no tenant %q", tenant)
	}
	m.run(s.rt, []*call{c}, s.now, false)
	return nil
}

// answered begins an answer: ok, replayed, or the code of the error and what a denial explains.
func answered(c *call) string {
	e, failed := errors.AsType[*Error](c.err)
	if !failed {
		return map[bool]string{false: "ok", true: "replayed"}[c.replayed]
	}
	out := string(e.Code)
	if e.Field != "" {
		out += " field " + e.Field
	}
	if d := e.Denial; d != nil {
		out += fmt.Sprintf(" meter %s required %d available %d reset %s would-succeed %s replayed %v",
			d.Limiting.Meter, d.Required, d.Available, formatInstant(d.ResetAt), formatInstant(d.WouldSucceedAt), e.Replayed)
	}
	return out
}

// debit TENANT METER AMOUNT [METER AMOUNT ...] key=KEY
func (s *scenario) debit(args []string, named map[string]string) (string, error) {
	d := &Debit{Tenant: args[0], Key: named["key"]}
	for i := 1; i+1 < len(args); i += 2 {
		amount, err := strconv.ParseInt(args[i+1], 10, 64)
		if err != nil {
			return "", err
		}
		d.Items = append(d.Items, Item{Meter: args[i], Amount: amount, StoreDenial: s.meters[args[i]]})
	}
	if err := d.validate(); err != nil {
		return "", err
	}
	c := d.call()
	if err := s.submit(d.Tenant, c); err != nil {
		return "", err
	}
	out := answered(c)
	if r, ok := c.result.(*DebitResult); ok && c.err == nil {
		for _, item := range r.Items {
			var from []string
			for _, draw := range item.Draws {
				from = append(from, fmt.Sprintf("%s:%d", nameOf(draw.Grant), draw.Amount))
			}
			prefix := ""
			if len(r.Items) > 1 {
				prefix = item.Meter + "."
			}
			out += fmt.Sprintf(" %[1]sremaining %[2]d %[1]sfrom %[3]s %[1]slimit %[4]d %[1]sreset %[5]s",
				prefix, item.Remaining, strings.Join(from, "+"), item.Limit, formatInstant(item.ResetAt))
		}
	}
	return out, nil
}

// nameOf shortens the id of an allowance to the day it began: allowance:2026-01-01.
func nameOf(grant string) string {
	if rest, ok := strings.CutPrefix(grant, "allowance:"); ok {
		return "allowance:" + rest[:len(time.DateOnly)]
	}
	return grant
}

// grant TENANT METER AMOUNT key=KEY [id=GRANT] [source=topup|promo] [priority=N] [from=INSTANT] [until=INSTANT]
func (s *scenario) grant(args []string, named map[string]string) (string, error) {
	amount, err := strconv.ParseInt(args[2], 10, 64)
	if err != nil {
		return "", err
	}
	g := &Grant{Tenant: args[0], Meter: args[1], Amount: amount, Key: named["key"], GrantID: named["id"], Source: SourceTopup}
	if text, ok := named["source"]; ok {
		g.Source = Source(text)
	}
	if text, ok := named["priority"]; ok {
		n, err := strconv.ParseInt(text, 10, 32)
		if err != nil {
			return "", err
		}
		g.Priority = new(int32(n))
	}
	for name, to := range map[string]*time.Time{"from": &g.EffectiveAt, "until": &g.ExpiresAt} {
		if text, ok := named[name]; ok {
			if *to, err = parseInstant(text); err != nil {
				return "", err
			}
		}
	}
	if err := g.validate(); err != nil {
		return "", err
	}
	c := g.call()
	if err := s.submit(g.Tenant, c); err != nil {
		return "", err
	}
	out := answered(c)
	if r, ok := c.result.(*GrantResult); ok && c.err == nil {
		out += fmt.Sprintf(" status %s remaining %d", r.Grant.Status, r.Position.Remaining)
	}
	return out, nil
}

// read brings a balance to now in memory, as reads do; nothing is kept.
func (s *scenario) read(tenant, meter string) (*memory, *book, []line, error) {
	m, ok := s.tenants[tenant]
	if !ok {
		return nil, nil, nil, fmt.Errorf("there is no tenant %q", tenant)
	}
	k := key{tenant, meter, ""}
	machine := m.load(&attempt{keys: []key{k}, force: true, demand: map[key]int64{}}, s.now)
	for {
		more, err := machine.advanceAll()
		if err != nil || !more {
			return m, machine.books[k], machine.journal.lines, err
		}
	}
}

// balance TENANT METER
func (s *scenario) balance(args []string, _ map[string]string) (string, error) {
	_, b, _, err := s.read(args[0], args[1])
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("ok remaining %d limit %d opening %d granted %d used %d expired %d start %s end %s plan %s version %d",
		b.remaining(), b.position().Limit, b.opening, b.granted, b.used, b.expired, formatInstant(b.start), formatInstant(b.end), b.plan, b.planVersion), nil
}

// statement TENANT METER START of the closed period that began at START.
func (s *scenario) statement(args []string, _ map[string]string) (string, error) {
	m, b, _, err := s.read(args[0], args[1])
	if err != nil {
		return "", err
	}
	start, err := parseInstant(args[2])
	if err != nil {
		return "", err
	}
	for _, p := range slices.Concat(m.periods[b.key], b.closed) {
		if p.start.Equal(start) {
			return fmt.Sprintf("ok end %s opening %d granted %d used %d expired %d closing %d plan %s version %d",
				formatInstant(p.end), p.opening, p.granted, p.used, p.expired, p.closing, p.plan, p.planVersion), nil
		}
	}
	return "none", nil
}

// entries TENANT METER [last=N]: kind:amount:remaining of each, oldest first.
func (s *scenario) entries(args []string, named map[string]string) (string, error) {
	m, b, unwritten, err := s.read(args[0], args[1])
	if err != nil {
		return "", err
	}
	var list []line
	for _, lines := range m.entries {
		list = append(list, slices.DeleteFunc(slices.Clone(lines), func(l line) bool { return l.key != b.key })...)
	}
	list = append(list, unwritten...)
	slices.SortFunc(list, func(a, b line) int { return int(a.seq - b.seq) })
	if text, ok := named["last"]; ok {
		n, err := strconv.Atoi(text)
		if err != nil {
			return "", err
		}
		list = list[max(0, len(list)-n):]
	}
	var shown []string
	for _, l := range list {
		shown = append(shown, fmt.Sprintf("%s:%d:%d", l.kind, l.amount, l.remainingAfter))
	}
	return fmt.Sprintf("ok count %d list %s", len(list), strings.Join(shown, ",")), nil
}

// grants TENANT METER: id and what is left of each open grant, in the order they burn.
func (s *scenario) grants(args []string, _ map[string]string) (string, error) {
	_, b, _, err := s.read(args[0], args[1])
	if err != nil {
		return "", err
	}
	var shown []string
	for _, g := range b.grants {
		switch g.Status {
		case GrantActive:
			shown = append(shown, fmt.Sprintf("%s:%d", nameOf(g.ID), g.Remaining))
		case GrantPending:
			shown = append(shown, fmt.Sprintf("%s:pending", g.ID))
		case GrantExhausted, GrantExpired, GrantVoided:
		}
	}
	return fmt.Sprintf("ok open %d list %s", len(shown), strings.Join(shown, ",")), nil
}
