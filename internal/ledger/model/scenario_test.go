package model

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/quotasvc/quotasvc/internal/kit/period"
	"github.com/quotasvc/quotasvc/internal/ledger"
	"github.com/quotasvc/quotasvc/internal/outbox/events"
)

// A scenario states a rule of the ledger as a story: testdata/scenarios has one file per rule, and its README.md
// explains the language. Each scenario runs twice on a Memory, with a clock that the story sets: once without rolls,
// and once with a roll before every line. Both runs must give the answers that the file expects.

// scenario is one run of a file.
type scenario struct {
	t         *testing.T
	rt        *rapid.T // receives the failures that Memory reports
	file      string
	line      int
	sweeps    bool // a roll runs before every line
	now       time.Time
	plans     map[string][]ledger.PlanVersion
	meters    map[string]bool // by id; true: denials of the meter are stored
	tenants   map[string]*Memory
	suspended map[string]bool
	emitted   []events.Event
	marks     map[events.Mark]bool // of events that were emitted and were not armed since; nil: none
	trying    bool                 // the current line begins with try
}

// words are the words of a line that follow its verb.
type words struct {
	args  []string          // words without '='
	named map[string]string // name=value
	all   []string
}

func wordsOf(all []string) words {
	w := words{named: map[string]string{}, all: all}
	for _, word := range all {
		if name, value, ok := strings.Cut(word, "="); ok {
			w.named[name] = value
		} else {
			w.args = append(w.args, word)
		}
	}
	return w
}

func scenarioFiles(t *testing.T) []string {
	files, err := filepath.Glob("../testdata/scenarios/*.txt")
	require.True(t, err == nil && len(files) != 0, "no scenarios: %v", err)
	return files
}

func TestScenarios_GiveStatedAnswers(t *testing.T) {
	t.Parallel()
	for _, file := range scenarioFiles(t) {
		name := strings.TrimSuffix(filepath.Base(file), ".txt")
		for _, sweeps := range []bool{false, true} {
			how := map[bool]string{false: "/lazily", true: "/swept"}[sweeps]
			t.Run(name+how, func(t *testing.T) {
				t.Parallel()
				// MakeFuzz with an empty input calls tell once, with a rapid.T and without randomness.
				rapid.MakeFuzz(func(rt *rapid.T) { tell(t, rt, file, sweeps) })(t, nil)
			})
		}
	}
}

// Each scenario file must begin with two sentences: the rule and its reason. docs/spending.md must have a link to
// each file.
func TestScenarios_StateTheirRule_AreInTheGuide(t *testing.T) {
	t.Parallel()
	guide, err := os.ReadFile("../../../docs/spending.md")
	require.NoError(t, err)
	for _, file := range scenarioFiles(t) {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		lines := strings.SplitN(string(text), "\n", 3)
		for i := range 2 {
			assert.True(t, len(lines) >= 3 && strings.HasPrefix(lines[i], "# ") && strings.HasSuffix(lines[i], "."),
				"%s:%d: want a sentence after '# '", file, i+1)
		}
		assert.Contains(t, string(guide), "(../internal/ledger/"+strings.TrimPrefix(file, "../")+")",
			"docs/spending.md has no link to %s", file)
	}
}

// tell runs the lines of a file. If a line has an unexpected answer, the test fails with file:line, and the run
// continues.
func tell(t *testing.T, rt *rapid.T, file string, sweeps bool) {
	in, err := os.Open(file)
	require.NoError(t, err)
	defer in.Close()
	s := &scenario{
		t: t, rt: rt, file: file, sweeps: sweeps, plans: map[string][]ledger.PlanVersion{}, meters: map[string]bool{},
		tenants: map[string]*Memory{}, suspended: map[string]bool{},
	}
	checked, ended := 0, false
	defer func() {
		if !ended { // Memory has failed rt
			s.fail("the run stopped here")
		}
	}()
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		s.line++
		text, _, _ := strings.Cut(lines.Text(), "#")
		command, want, expects := strings.Cut(text, "->")
		if len(strings.Fields(command)) == 0 {
			continue
		}
		got, err := s.do(strings.Fields(command))
		switch {
		case err != nil:
			s.fail("%s\n    %v", strings.TrimSpace(text), err)
		case expects && !tells(got, strings.Fields(want)):
			s.fail("%s\n    expected: %s\n    got:      %s", strings.TrimSpace(command), strings.TrimSpace(want), got)
		case !expects && strings.Contains(got, " "):
			s.fail("%s: the line gives an answer (%s) and expects none", strings.TrimSpace(command), got)
		}
		if expects {
			checked++
		}
		for _, m := range s.tenants {
			m.check(rt)
		}
	}
	ended = true
	if err := lines.Err(); err != nil || checked == 0 {
		s.fail("the scenario expects no answer (%v)", err)
	}
}

func (s *scenario) fail(format string, args ...any) {
	s.t.Helper()
	s.t.Errorf("%s:%d: %s", s.file, s.line, fmt.Sprintf(format, args...))
}

// tells reports whether answer begins with the first word of want and contains each pair "name value" from the other
// words.
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

// do runs one line and returns its answer: a word, then pairs of name and value.
func (s *scenario) do(line []string) (string, error) {
	s.trying = line[0] == "try"
	if s.trying {
		line = line[1:]
	}
	commands := map[string]struct {
		args int // minimum
		run  func(words) (string, error)
	}{
		"at": {1, s.at}, "meter": {1, s.meter}, "plan": {3, s.plan}, "tenant": {1, s.tenant}, "suspend": {1, s.suspend}, "resume": {1, s.resume},
		"debit": {3, s.debit}, "grant": {3, s.grant}, "hold": {3, s.hold}, "capture": {2, s.capture}, "release": {2, s.release},
		"extend": {2, s.extend}, "refund": {2, s.refund}, "adjust": {3, s.adjust}, "void": {2, s.void}, "prolong": {2, s.prolong},
		"balance": {2, s.balance}, "statement": {3, s.statement}, "entries": {2, s.entries}, "grants": {2, s.grants},
		"alerts": {2, s.alerts},
	}
	if len(line) == 0 || commands[line[0]].run == nil {
		return "", errors.New("no such command")
	}
	c, w := commands[line[0]], wordsOf(line[1:])
	if len(w.args) < c.args {
		return "", errors.New("too few words")
	}
	if s.sweeps {
		for _, m := range s.tenants {
			m.sweep(s.rt, s.now)
		}
	}
	return c.run(w)
}

// parseInstant reads a day such as 2026-01-31, which means 00:00 UTC of that day, or an instant such as
// 2026-01-31T10:00Z. An instant may have seconds and an offset.
func parseInstant(text string) (time.Time, error) {
	for _, layout := range []string{time.DateOnly, "2006-01-02T15:04Z07:00", time.RFC3339Nano} {
		if t, err := time.Parse(layout, text); err == nil {
			return t.UTC(), nil
		}
	}
	return time.Time{}, fmt.Errorf("%q is not an instant like 2026-01-31T10:00Z", text)
}

// formatInstant returns t as text, as the answers of a scenario have it.
func formatInstant(t time.Time) string {
	switch {
	case t.IsZero() || !t.Before(period.Forever):
		return "never"
	case t.Second() == 0 && t.Nanosecond() == 0:
		return t.UTC().Format("2006-01-02T15:04Z")
	}
	return t.UTC().Format(time.RFC3339Nano)
}

// amounts reads METER AMOUNT pairs.
func (s *scenario) amounts(args []string) ([]ledger.Item, error) {
	var items []ledger.Item
	for i := 0; i < len(args); i += 2 {
		if i+1 == len(args) {
			return nil, fmt.Errorf("how many %s?", args[i])
		}
		n, err := strconv.ParseInt(args[i+1], 10, 64)
		if err != nil {
			return nil, err
		}
		items = append(items, ledger.Item{Meter: args[i], Amount: n, StoreDenial: s.meters[args[i]]})
	}
	return items, nil
}

// key returns the value of key= in the line. If the line has none, key returns a key made of the line number.
func (s *scenario) key(w words) string {
	if k, ok := w.named["key"]; ok {
		return k
	}
	return fmt.Sprint("line-", s.line)
}

// subject returns the value of subject= in the line.
func (w words) subject() string { return w.named["subject"] }

// lasts returns the value of lasts= in the line, or 0 if the line has none.
func (w words) lasts() (time.Duration, error) {
	text, ok := w.named["lasts"]
	if !ok {
		return 0, nil
	}
	return time.ParseDuration(text)
}
