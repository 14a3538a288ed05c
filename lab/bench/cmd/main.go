package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/alecthomas/kong"
	"golang.org/x/term"

	"github.com/quotasvc/quotasvc/internal/lab/localstack"
	"github.com/quotasvc/quotasvc/lab/bench"
	"github.com/quotasvc/quotasvc/lab/bench/report"
)

// These are the exit statuses. They are the same as those of quotasvc.
const (
	exitFailure = 1
	exitUsage   = 2
)

// errMissed is the error of a strict run that has missed a target. The report names the target.
var errMissed = errors.New("a target was missed")

// cli is the command line.
type cli struct {
	Run      runCmd      `cmd:"" default:"withargs" help:"Measure throughput and latency beside the baselines. Print the results and store them with charts."`
	Outage   outageCmd   `cmd:"" help:"Kill Redis under load and start it again. Show how long callers wait and how much is admitted."`
	Flood    floodCmd    `cmd:"" help:"Flood the service with requests that it refuses. Show the effect on other tenants and the cost of a refusal."`
	Scale    scaleCmd    `cmd:"" help:"Compute what a rate of debits needs, from measured costs: a model, not a measurement."`
	Postgres postgresCmd `cmd:"" help:"Run the debit load on PostgreSQL with one setting after the other. Show what each changes."`
	Growth   growthCmd   `cmd:"" help:"Compare small and large amounts of stored data: tenants, entries, instances, partitions, rules, a month's end."`
	Baseline baselineCmd `cmd:"" hidden:"" help:"Serve the baselines."`
	Attack   attackCmd   `cmd:"" hidden:"" help:"Send a flood."`
}

func main() { os.Exit(execute(os.Args[1:])) }

// execute runs one command line and returns the exit status.
func execute(args []string) int {
	var c cli
	parser := kong.Must(&c,
		kong.Name("quotasvc-bench"),
		kong.Description("Benchmarks of quotasvc, on a private PostgreSQL and Redis."),
		kong.UsageOnError(),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: 110}),
	)
	command, err := parser.Parse(args)
	if err != nil {
		fmt.Fprintf(os.Stderr, "quotasvc-bench: %s\n", err)
		return exitUsage
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	command.BindTo(ctx, (*context.Context)(nil))
	if err := command.Run(); err != nil {
		fmt.Fprintf(os.Stderr, "quotasvc-bench: %s\n", localstack.Explain(err))
		return exitFailure
	}
	return 0
}

// programConfig is the common part of the measuring commands.
type programConfig struct {
	Quotasvc string `default:"bin/quotasvc" placeholder:"FILE" type:"existingfile" help:"The binary of quotasvc to measure."`
	Dir      string `default:"bench-results" type:"path" help:"Directory of the results and, during the run, of the servers' data. It should be on the disk to be measured."`
	Strict   bool   `help:"Exit with status 1 if a target is missed."`
}

// withLog creates the results directory and calls the function `do` with the programs of a run, whose servers write
// into a file.
func (c *programConfig) withLog(do func(bench.Programs) error) (err error) {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program's binary: %w", err)
	}
	if err := os.MkdirAll(c.Dir, 0o755); err != nil {
		return fmt.Errorf("make the results directory: %w", err)
	}
	log, err := os.Create(filepath.Join(c.Dir, "servers.log"))
	if err != nil {
		return fmt.Errorf("make the servers' log: %w", err)
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	return do(bench.Programs{Exe: c.Quotasvc, Self: self, Dir: c.Dir, Progress: os.Stderr, Log: log})
}

// measured is the result of a measuring command.
type measured interface {
	Keep(docs string) error
	Met() bool
}

// finish writes the result below docs if record is set. It prints to out which files are in the results directory. It
// returns an error if a strict run has missed a target.
func (c *programConfig) finish(r measured, record bool, docs string, out io.Writer, files string) error {
	if record {
		if err := r.Keep(docs); err != nil {
			return err
		}
	}
	fmt.Fprintf(out, "\n%s are in %s\n", files, c.Dir)
	if c.Strict && !r.Met() {
		return errMissed
	}
	return nil
}

// printer writes to standard output, in color if that is a terminal.
func printer() *report.Printer {
	return &report.Printer{Out: os.Stdout, Color: term.IsTerminal(int(os.Stdout.Fd()))}
}

// baselineCmd is the command that serves the baselines, with which a run compares the service.
type baselineCmd struct {
	DatabaseURL string `name:"database-url" env:"QUOTASVC_DATABASE_URL" required:"" help:"PostgreSQL."`
	Conns       int    `required:"" help:"Connections to PostgreSQL."`
}

// Run serves until ctx ends.
func (c *baselineCmd) Run(ctx context.Context) error {
	return bench.ServeBaseline(ctx, c.DatabaseURL, c.Conns, func(address string) { fmt.Fprintln(os.Stdout, "baseline "+address) })
}
