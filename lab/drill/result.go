package drill

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/quotasvc/quotasvc/lab/bench/report"
)

// Result is the result of a run.
type Result struct {
	Seed     uint64
	Took     time.Duration
	Faults   map[Action]int
	Timeline []Moment
	Marks    []Mark

	Operations   map[Outcome]int
	Answers      map[int]int // number of answers by status; 0: no answer
	Replays      int
	BalanceReads int

	Negative int            // number of reads of a balance with an amount below zero
	Wrong    map[string]int // number of answers that no fault explains, by their error
	Crashed  int64          // instances that ended without a fault
	BadStops []string       // instances that SIGTERM did not end in time with status 0
	Limits   Limits

	Strangers map[int]int // number of answers to strangers by status; 0: no answer

	AtOnce    Findings // findings before open operations were sent again
	AtEnd     Findings
	Opened    int // operations that were open at the end of the faults
	StillOpen int // operations of Opened that a retry did not resolve
	Restores  []Restored

	Verified     bool
	VerifyReport string

	LongestRefusal time.Duration // by an instance without a fault
	RefusalsOver   []string      // refusals over five seconds

	mu sync.Mutex
}

// Restored contains the findings about a cluster that was restored to an instant.
type Restored struct {
	Instant  time.Time
	Findings Findings
	Verified bool
}

// Moment contains the counts of a run until one instant.
type Moment struct {
	At                  time.Duration // the instant, since the start of the run
	Done, Refused, Open int           // number of operations with this outcome until then
	Unanswered          int           // attempts without an answer or with 503 until then
}

// Mark is a fault on the timeline.
type Mark struct {
	At, Took time.Duration
	Action   Action
}

func newResult(cfg *Config) *Result {
	return &Result{Seed: cfg.Seed, Faults: map[Action]int{}}
}

// fault counts a fault.
func (r *Result) fault(do Action, at, took time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Faults[do]++
	r.Marks = append(r.Marks, Mark{at, took, do})
}

// kills and failovers return the number of SIGKILLs without a failover, and the number of failovers.
func (r *Result) kills() int {
	return r.Faults[KillInstance] + r.Faults[KillPrimary] + r.Faults[KillStandby] + r.Faults[KillRedis] +
		r.Faults[KillLogStalled] + r.Faults[KillWithoutRedis]
}

func (r *Result) failovers() int {
	return r.Faults[Failover] + r.Faults[FailoverPaused] + r.Faults[FailoverDead] + r.Faults[FailoverPrimaryUp]
}

// remember copies the counts of the clients' memory and the ends of instances into the result.
func (r *Result) remember(m *memory, f *fleet) {
	r.Operations, r.Crashed, r.BadStops = m.tally(), f.crashed(), f.badStops
	m.mu.Lock()
	defer m.mu.Unlock()
	r.Answers, r.Wrong, r.Negative, r.Replays, r.BalanceReads = maps.Clone(m.answers), maps.Clone(m.wrong), m.negative, m.replays, m.reads
	r.LongestRefusal, r.RefusalsOver, r.Strangers = m.waits.longest, m.waits.over, maps.Clone(m.strangers)
}

// watch records the timeline and prints the counts, until stop is closed.
func (d *drill) watch(ctx context.Context, stop <-chan struct{}) {
	const every = 500 * time.Millisecond
	tick := time.NewTicker(every)
	defer tick.Stop()
	printed := time.Now()
	for {
		select {
		case <-tick.C:
		case <-stop:
			return
		case <-ctx.Done():
			return
		}
		n := d.memory.tally()
		d.memory.mu.Lock()
		unanswered := d.memory.answers[0] + d.memory.answers[503]
		d.memory.mu.Unlock()
		d.out.mu.Lock()
		d.out.Timeline = append(d.out.Timeline, Moment{time.Since(d.start), n[Done], n[Refused], n[Open], unanswered})
		kills, failovers := d.out.kills(), d.out.failovers()
		restores, rolls := d.out.Faults[Restore], d.out.Faults[Rolling]
		d.out.mu.Unlock()
		if time.Since(printed) >= progressEvery {
			printed = time.Now()
			d.say("%4.0fs: %d kills, %d failovers, %d rolling restarts, %d restores; %d acknowledged, %d refused, %d open; %d violations",
				time.Since(d.start).Seconds(), kills, failovers, rolls, restores, n[Done], n[Refused], n[Open], d.memory.wrongs())
		}
	}
}

// Violations returns a line for each broken promise.
func (r *Result) Violations() []string {
	var all []string
	count := func(n int, what string) {
		if n > 0 {
			all = append(all, fmt.Sprintf("%d %s", n, what))
		}
	}
	findings := func(f *Findings, when string) {
		count(f.Lost, "lost "+when)
		count(f.Twice, "doubled "+when)
		count(f.Present, "refused and in the journal "+when)
		count(f.Unknown, "in the journal and remembered by nobody "+when)
	}
	findings(&r.AtOnce, "before retries")
	findings(&r.AtEnd, "at the end")
	for i := range r.Restores {
		findings(&r.Restores[i].Findings, "in a restored cluster")
		if !r.Restores[i].Verified {
			all = append(all, "a restored cluster is not clean")
		}
	}
	count(r.Negative, "balances below zero")
	count(r.StillOpen, "operations that a retry did not resolve")
	count(int(r.Crashed), "instances that ended by themselves")
	count(len(r.BadStops), "instances that SIGTERM did not end in time with status 0")
	count(r.Limits.All.Beyond, "over a limit beyond the stated bound")
	for _, what := range slices.Sorted(maps.Keys(r.Wrong)) {
		count(r.Wrong[what], what)
	}
	if !r.Verified {
		all = append(all, "verify is not clean: "+lastLine(r.VerifyReport))
	}
	return all
}

// Print writes the counts and the verdict to out.
func (r *Result) Print(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	line := func(name string, value any) { fmt.Fprintf(w, "%s\t%v\n", name, value) }
	fmt.Fprintf(w, "\nseed %d, %s\n\nfault\ttimes\n", r.Seed, r.Took.Round(time.Second))
	for _, do := range slices.Sorted(maps.Keys(r.Faults)) {
		line(string(do), r.Faults[do])
	}
	line("all kills", r.kills())
	line("all failovers", r.failovers())
	fmt.Fprintf(w, "\nwhat clients remember\t\n")
	line("operations", r.AtEnd.Compared)
	line("acknowledged", r.Operations[Done])
	line("refused", r.Operations[Refused])
	line("open after the faults", r.Opened)
	line("resolved by a retry", r.Opened-r.StillOpen)
	line("answers by status (0: none)", r.Answers)
	line("replayed answers", r.Replays)
	line("reads of balances", r.BalanceReads)
	line("longest refusal, over 5 s", fmt.Sprintf("%s, %d times", r.LongestRefusal.Round(time.Millisecond), len(r.RefusalsOver)))
	for _, one := range r.RefusalsOver {
		line("", one)
	}
	line("refused, and an unanswered attempt was carried out later", r.AtEnd.Late)
	line("answers to strangers by status (0: none)", r.Strangers)
	r.Limits.print(w)
	fmt.Fprintf(w, "\nwhat must be 0\t\n")
	line("lost: acknowledged and not in the journal", r.AtOnce.Lost+r.AtEnd.Lost)
	line("doubled: charged twice", r.AtOnce.Twice+r.AtEnd.Twice)
	line("over a limit beyond the stated bound", r.Limits.All.Beyond)
	line("refused and in the journal", r.AtOnce.Present+r.AtEnd.Present)
	line("in the journal and remembered by nobody", r.AtOnce.Unknown+r.AtEnd.Unknown)
	line("balances below zero", r.Negative)
	line("not resolved by a retry", r.StillOpen)
	line("instances not ended in time with status 0", len(r.BadStops))
	bad := 0
	for i := range r.Restores {
		bad += r.Restores[i].Findings.Violations()
	}
	line(fmt.Sprintf("differences in %d restored clusters", len(r.Restores)), bad)
	line("verify", lastLine(r.VerifyReport))
	if err := w.Flush(); err != nil {
		return fmt.Errorf("print the tally: %w", err)
	}
	return r.printVerdict(out)
}

// print writes what was admitted over limits, beside the bounds that docs/degradation.md states.
func (l *Limits) print(w io.Writer) {
	fmt.Fprintf(w, "\nlimits\t\nrequests\t%d\ngranted\t%d\ngranted without redis\t%d\n", l.Requests, l.Granted, l.Local)
	fmt.Fprintf(w, "\nbuckets by outage of redis\tbuckets\tover the limit\tbound\tbeyond\n")
	row := func(name string, e Excess) {
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\n", name, e.Buckets, e.Over, e.Bound, e.Beyond)
	}
	for _, name := range slices.Sorted(maps.Keys(l.By)) {
		row(name, l.By[name])
	}
	row("all", l.All)
}

func (r *Result) printVerdict(out io.Writer) error {
	violations := r.Violations()
	verdict := "\nPASSED: 0 lost, 0 doubled, 0 over a limit beyond the stated bound, verify is clean\n"
	if len(violations) > 0 {
		verdict = "\nFAILED: " + strings.Join(violations, "\n        ") + "\n"
		for _, f := range []*Findings{&r.AtOnce, &r.AtEnd} {
			verdict += strings.Join(f.Examples, "\n") + "\n"
		}
		verdict += strings.Join(append(slices.Clone(r.BadStops), r.Limits.Examples...), "\n") + "\n"
	}
	_, err := io.WriteString(out, verdict)
	return err
}

// write stores the result as JSON, and the chart.
func (r *Result) write(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("results directory: %w", err)
	}
	if err := report.WriteJSON(filepath.Join(dir, "drill.json"), r); err != nil {
		return err
	}
	if len(r.Timeline) <= perPoint {
		return nil // the timeline is too short for a line
	}
	return r.chart(filepath.Join(dir, "drill.svg"))
}

// lastLine returns the last line of a text. In the output of `quotasvc verify`, this line is the summary.
func lastLine(text string) string {
	text = strings.TrimSpace(text)
	return text[strings.LastIndexByte(text, '\n')+1:]
}
