package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"
)

// event is a line of go test -json; `go doc test2json` describes it.
type event struct {
	Action     string
	Package    string
	ImportPath string // package of the compiler's output
	Test       string
	Elapsed    float64 // s
	Output     string
}

// name is a test of a package, or the package itself if test is empty.
type name struct{ pkg, test string }

func (n name) String() string { return strings.TrimSpace(n.pkg + " " + n.test) }

// timed is the duration of an ended test or package.
type timed struct {
	name
	seconds float64
}

// report prints the progress of a run and collects the data for its summary.
type report struct {
	to      io.Writer
	left    map[string]bool // packages that have not ended
	begun   time.Time
	prefix  string            // beginning of all package paths
	output  map[name]string   // output of unfinished tests; the output of subtests belongs to their test
	started map[string]string // package -> the test that started last
	passed  int
	failures,
	skipped []name
	reasons map[name]string // reasons of skipped tests
	ended   []timed
}

func newReport(to io.Writer, packages []string) *report {
	r := &report{
		to: to, left: map[string]bool{}, begun: time.Now(), output: map[name]string{}, reasons: map[name]string{},
		started: map[string]string{},
	}
	for _, p := range packages {
		r.left[p] = true
	}
	r.prefix = commonPath(packages)
	return r
}

// commonPath returns the longest path that contains all packages, with a slash at its end.
func commonPath(packages []string) string {
	prefix := path.Dir(packages[0])
	for _, p := range packages {
		for prefix != "." && !strings.HasPrefix(p, prefix+"/") {
			prefix = path.Dir(prefix)
		}
	}
	if prefix == "." {
		return ""
	}
	return prefix + "/"
}

// read reads the events of a run to its end.
func (r *report) read(from io.Reader) error {
	lines := bufio.NewReader(from)
	for {
		line, err := lines.ReadBytes('\n')
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read the output of go test: %w", err)
		}
		var e event
		if json.Unmarshal(line, &e) != nil {
			fmt.Fprintf(r.to, "%s", line)
			continue
		}
		r.take(e)
	}
}

// take processes one event.
func (r *report) take(e event) {
	e.Package = strings.TrimPrefix(cmp.Or(e.Package, e.ImportPath), r.prefix)
	top, _, sub := strings.Cut(e.Test, "/")
	about := name{e.Package, top}
	switch e.Action {
	case "run", "cont":
		r.started[e.Package] = e.Test
	case "output", "build-output":
		if e.Test == "" && noise.MatchString(e.Output) {
			return
		}
		r.output[about] += e.Output
	case "build-fail":
		fmt.Fprintf(r.to, "\nFAIL %s does not compile\n%s\n", e.Package, r.output[about])
		delete(r.output, about)
	case "pass", "fail", "skip":
		r.finish(e, about, sub)
	}
}

// noise matches lines of output that add nothing to the report.
var noise = regexp.MustCompile(`^(PASS|FAIL|ok  ?\t.*|FAIL\t.*|\?   \t.*|-test\.shuffle \d+|exit status 1|testing: warning: no tests to run)\n$`)

func (r *report) finish(e event, about name, sub bool) {
	if e.Action == "skip" && e.Test != "" {
		r.skipped = append(r.skipped, name{e.Package, e.Test})
		r.reasons[name{e.Package, e.Test}] = lastLine(r.output[about])
	}
	if sub {
		return
	}
	if e.Test == "" {
		r.finishPackage(e)
		return
	}
	r.ended = append(r.ended, timed{about, e.Elapsed})
	switch e.Action {
	case "pass":
		r.passed++
	case "fail":
		r.failures = append(r.failures, about)
		fmt.Fprintf(r.to, "\nFAIL %s after %.1f s\n%s\n", about, e.Elapsed, r.output[about])
	}
	delete(r.output, about)
}

// finishPackage prints a line for a package that has ended. A package may fail although none of its tests failed. The
// cause is a panic, the time limit, or a goroutine that its tests have left. Then finishPackage prints the whole
// output.
func (r *report) finishPackage(e event) {
	delete(r.left, r.prefix+e.Package)
	whole := name{e.Package, ""}
	ownFault := e.Action == "fail" && !slices.ContainsFunc(r.failures, func(n name) bool { return n.pkg == e.Package })
	for _, n := range slices.SortedFunc(maps.Keys(r.output), func(a, b name) int { return cmp.Compare(a.test, b.test) }) {
		if n.pkg != e.Package {
			continue
		}
		if text := r.output[n]; e.Action == "fail" && strings.TrimSpace(text) != "" {
			fmt.Fprintf(r.to, "\nFAIL %s: output without an end\n%s\n", n, text)
		}
		delete(r.output, n)
	}
	if ownFault {
		r.failures = append(r.failures, whole)
	}
	r.ended = append(r.ended, timed{whole, e.Elapsed})
	fmt.Fprintf(r.to, "%s  %-32s %6.1f s   at %s, %s\n", map[string]string{"pass": "ok  ", "fail": "FAIL", "skip": "none"}[e.Action],
		e.Package, e.Elapsed, time.Since(r.begun).Round(time.Second), r.whatIsLeft())
}

// whatIsLeft returns the number of packages that have not ended. If they are few, it also returns their names.
func (r *report) whatIsLeft() string {
	const few = 4
	if len(r.left) > few || len(r.left) == 0 {
		return fmt.Sprintf("%d packages left", len(r.left))
	}
	var names []string
	for _, p := range slices.Sorted(maps.Keys(r.left)) {
		p = strings.TrimPrefix(p, r.prefix)
		names = append(names, strings.TrimSpace(p+" "+r.started[p]))
	}
	return "left: " + strings.Join(names, ", ")
}

func (r *report) failed() bool { return len(r.failures) > 0 || len(r.left) > 0 }

// end prints the summary. The last line of the summary contains the numbers of tests.
func (r *report) end(slowest int) {
	r.printSlowest(slowest)
	if len(r.skipped) > 0 {
		fmt.Fprintln(r.to, "\nNOT TESTED HERE:")
		for _, n := range r.skipped {
			fmt.Fprintf(r.to, "  %s: %s\n", n, r.reasons[n])
		}
	}
	for _, p := range slices.Sorted(maps.Keys(r.left)) {
		fmt.Fprintf(r.to, "FAIL %s did not end\n", strings.TrimPrefix(p, r.prefix))
	}
	if len(r.failures) > 0 {
		fmt.Fprintln(r.to, "\nFAILED; to repeat one of them alone:")
	}
	for _, n := range r.failures {
		which := ""
		if n.test != "" {
			which = "-run '^" + n.test + "$' "
		}
		fmt.Fprintf(r.to, "  go test -count=1 %s%s\n", which, r.prefix+n.pkg)
	}
	fmt.Fprintf(r.to, "\n%s in all\n%d passed, %d failed, %d skipped\n",
		time.Since(r.begun).Round(time.Second), r.passed, len(r.failures)+len(r.left), len(r.skipped))
}

func (r *report) printSlowest(n int) {
	slices.SortStableFunc(r.ended, func(a, b timed) int { return cmp.Compare(b.seconds, a.seconds) })
	for _, kind := range []string{"packages", "tests"} {
		printed := 0
		for _, e := range r.ended {
			if (e.test == "") != (kind == "packages") || printed >= n {
				continue
			}
			if printed++; printed == 1 {
				fmt.Fprintf(r.to, "\nThe slowest %s:\n", kind)
			}
			fmt.Fprintf(r.to, "%8.1f s  %s\n", e.seconds, e.name)
		}
	}
}

// lastLine returns the last line of output that is not empty and not a line of go test itself. For a skipped test
// this line is the reason, because it comes just before the result.
func lastLine(output string) string {
	last := ""
	for line := range strings.Lines(output) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "---") && !strings.HasPrefix(line, "===") {
			last = line
		}
	}
	return last
}
