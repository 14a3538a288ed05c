package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// position is a place in a file.
type position struct{ line, column int }

func (p position) before(q position) bool {
	return p.line < q.line || p.line == q.line && p.column < q.column
}

// span is the text between two positions.
type span struct{ from, to position }

func (s span) contains(t span) bool { return !t.from.before(s.from) && !s.to.before(t.to) }

// counters are the blocks that ran, by file ("internal/lane/lane.go").
type counters map[string][]span

// readCounters reads what the recorder wrote into dir.
func readCounters(ctx context.Context, dir string) (counters, error) {
	text := filepath.Join(dir, "text")
	if out, err := exec.CommandContext(ctx, "go", "tool", "covdata", "textfmt", "-i="+dir, "-o="+text).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("read the counters: %w\n%s", err, out)
	}
	f, err := os.Open(text)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	c := counters{}
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		name, rest, found := strings.Cut(lines.Text(), ".go:")
		if !found {
			continue // the first line names the counters' mode
		}
		var (
			s                 span
			statements, count int
		)
		_, err := fmt.Sscanf(rest, "%d.%d,%d.%d %d %d", &s.from.line, &s.from.column, &s.to.line, &s.to.column, &statements, &count)
		if err != nil {
			return nil, fmt.Errorf("counter %q: %w", lines.Text(), err)
		}
		if count > 0 {
			name = strings.TrimPrefix(name, module+"/") + ".go"
			c[name] = append(c[name], s)
		}
	}
	return c, lines.Err()
}

// and returns the blocks that ran in both; nil counters are no restriction.
func (c counters) and(d counters) counters {
	if c == nil {
		return d
	}
	both := counters{}
	for name, blocks := range c {
		for _, b := range blocks {
			if slices.Contains(d[name], b) {
				both[name] = append(both[name], b)
			}
		}
	}
	return both
}

// within returns the blocks of a file that ran and lie in s.
func (c counters) within(file string, s span) []span {
	var in []span
	for _, b := range c[file] {
		if s.contains(b) {
			in = append(in, b)
		}
	}
	return in
}
