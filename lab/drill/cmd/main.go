package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/alecthomas/kong"

	"github.com/quotasvc/quotasvc/internal/lab/localstack"
	"github.com/quotasvc/quotasvc/lab/drill"
)

// These are the exit statuses. They are the same as those of quotasvc.
const (
	exitFailure = 1
	exitUsage   = 2
)

// errViolated is the error of a run that found a broken promise. The verdict names the promise.
var errViolated = errors.New("a promise was broken")

// cli is the command line.
type cli struct {
	Quotasvc  string        `default:"bin/quotasvc" placeholder:"FILE" type:"existingfile" help:"The binary of quotasvc to drill."`
	Dir       string        `default:"drill-results" type:"path" help:"Directory of the results and of the instances' log."`
	Seed      uint64        `help:"Seed of the schedule. 0 draws one and prints it."`
	Kills     int           `default:"200" env:"DRILL_KILLS" help:"SIGKILLs of instances, PostgreSQL and Redis, without the SIGKILLs of failovers."`
	Failovers int           `default:"20" env:"DRILL_FAILOVERS" help:"Failovers from the primary to the standby."`
	Others    int           `default:"42" env:"DRILL_OTHERS" help:"Floods of strangers, logs that stall, and Redis failed over, refusing writes, or paused while an instance is killed: one of these after the other."`
	Restores  int           `default:"3" env:"DRILL_RESTORES" help:"Backups that are restored to an instant."`
	Instances int           `default:"3" help:"Instances of the service."`
	Clients   int           `default:"16" help:"Clients, each with one operation at a time."`
	Tenants   int           `default:"12" help:"Tenants of the load."`
	Pace      time.Duration `default:"60ms" help:"Pause of a client between two operations."`
	Calm      time.Duration `default:"1500ms" help:"Longest pause between two faults."`
}

func main() { os.Exit(execute(os.Args[1:])) }

// execute runs one command line and returns the exit status.
func execute(args []string) int {
	var c cli
	parser := kong.Must(&c,
		kong.Name("quotasvc-drill"),
		kong.Description("Breaks a private installation of quotasvc under load and proves that no answer was lost."),
		kong.UsageOnError(),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: 110}),
	)
	if _, err := parser.Parse(args); err != nil {
		fmt.Fprintf(os.Stderr, "quotasvc-drill: %s\n", err)
		return exitUsage
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	if err := c.run(ctx); err != nil {
		fmt.Fprintf(os.Stderr, "quotasvc-drill: %s\n", localstack.Explain(err))
		return exitFailure
	}
	return 0
}

func (c *cli) run(ctx context.Context) (err error) {
	if err := os.MkdirAll(c.Dir, 0o755); err != nil {
		return fmt.Errorf("make the results directory: %w", err)
	}
	log, err := os.Create(filepath.Join(c.Dir, "instances.log"))
	if err != nil {
		return fmt.Errorf("make the instances' log: %w", err)
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	for c.Seed == 0 {
		c.Seed = rand.Uint64() >> 32 // short enough to type
	}
	result, err := drill.Run(ctx, drill.Config{
		Exe: c.Quotasvc, Results: c.Dir, Seed: c.Seed, Kills: c.Kills, Failovers: c.Failovers, Others: c.Others,
		Restores: c.Restores, Instances: c.Instances, Clients: c.Clients, Tenants: c.Tenants, Pace: c.Pace, Calm: c.Calm, Progress: os.Stderr, Log: log,
	})
	if err != nil {
		return err
	}
	if err := result.Print(os.Stdout); err != nil {
		return err
	}
	fmt.Fprintf(os.Stdout, "\ndrill.json, drill.svg and instances.log are in %s\n", c.Dir)
	if len(result.Violations()) > 0 {
		return errViolated
	}
	return nil
}
