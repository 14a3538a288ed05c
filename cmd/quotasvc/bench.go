package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/quotasvc/quotasvc/internal/bench"
)

// benchCmd measures; its other part is what it starts as a process of its own.
type benchCmd struct {
	Run      benchRunCmd      `cmd:"" default:"withargs" help:"Measure, print, and store results and charts."`
	Outage   benchOutageCmd   `cmd:"" help:"Kill Redis under load and bring it back: what callers wait, and what is admitted."`
	Baseline benchBaselineCmd `cmd:"" hidden:"" help:"Serve what the service is compared with."`
}

type benchRunCmd struct {
	Full        bool          `help:"Measure for about eight minutes instead of one and a half: more and longer rounds."`
	Dir         string        `default:"bench-results" type:"path" help:"Directory of the results, and of the servers' data while it runs: it should be on the disk that is to be measured."`
	Rounds      int           `placeholder:"N" help:"Rounds of all variants."`
	Slice       time.Duration `placeholder:"DURATION" help:"How long a variant runs in a round."`
	OpenFor     time.Duration `placeholder:"DURATION" help:"How long a fixed rate is kept up."`
	Connections int           `default:"256" help:"Connections of the load generator."`
	Tenants     int           `default:"10000" help:"Tenants the load is spread over."`
	Batch       int           `default:"500" help:"Debits of one batch request."`
	Rates       []int         `default:"1000,5000,10000" help:"Fixed rates to measure latency at, in requests/s."`
	Only        []string      `placeholder:"TEXT" sep:"none" help:"Measure only the variants with this in their names; may be given several times."`
	Profile     time.Duration `placeholder:"DURATION" help:"Afterwards, store CPU profiles of the service under each of its variants."`
	Against     string        `placeholder:"FILE" type:"existingfile" help:"Another binary of quotasvc to measure in the same rounds: what did a change do?"`
	Strict      bool          `help:"Exit with status 1 if a target is missed."`
}

// Run measures.
func (c *benchRunCmd) Run(ctx context.Context, _ *slog.Logger) (err error) {
	exe, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find our own binary: %w", err)
	}
	rounds, slice, openFor := 3, 1200*time.Millisecond, 3*time.Second
	if c.Full {
		rounds, slice, openFor = 9, 3*time.Second, 12*time.Second
	}
	if c.Rounds != 0 {
		rounds = c.Rounds
	}
	if c.Slice != 0 {
		slice = c.Slice
	}
	if c.OpenFor != 0 {
		openFor = c.OpenFor
	}
	if err := os.MkdirAll(c.Dir, 0o755); err != nil {
		return fmt.Errorf("results directory: %w", err)
	}
	servers, err := os.Create(filepath.Join(c.Dir, "servers.log"))
	if err != nil {
		return fmt.Errorf("servers' log: %w", err)
	}
	defer func() { err = errors.Join(err, servers.Close()) }()
	results, err := bench.Run(ctx, bench.Config{
		Exe: exe, Dir: c.Dir, Rounds: rounds, Slice: slice, OpenFor: openFor, Connections: c.Connections, Tenants: c.Tenants,
		Batch: c.Batch, Rates: c.Rates, Only: c.Only, Profile: c.Profile, Against: c.Against, Progress: os.Stderr, Log: servers,
	})
	if err != nil {
		return explainStack(err)
	}
	if err := results.Print(os.Stdout); err != nil {
		return err
	}
	fmt.Printf("\nresults.json and charts are in %s\n", c.Dir)
	if c.Strict {
		for _, t := range results.Targets {
			if !t.Pass {
				return exitStatus(1)
			}
		}
	}
	return nil
}

type benchOutageCmd struct {
	Dir         string        `default:"bench-results" type:"path" help:"Directory of the results, and of the servers' data while it runs."`
	Rate        int           `default:"5000" help:"Requests/s, over all instances: four checks for each consume."`
	Instances   int           `default:"2" help:"Instances of the service, which share out a rule while Redis is away."`
	Connections int           `default:"256" help:"Connections of the load generator."`
	Before      time.Duration `default:"5s" help:"How long Redis is there at first."`
	Away        time.Duration `default:"8s" help:"How long it is away."`
	After       time.Duration `default:"12s" help:"How long the load goes on when it is back. Instances ask for it every 5 s."`
	Strict      bool          `help:"Exit with status 1 if a target is missed."`
}

// Run measures.
func (c *benchOutageCmd) Run(ctx context.Context, _ *slog.Logger) (err error) {
	exe, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find our own binary: %w", err)
	}
	if err := os.MkdirAll(c.Dir, 0o755); err != nil {
		return fmt.Errorf("results directory: %w", err)
	}
	servers, err := os.Create(filepath.Join(c.Dir, "servers.log"))
	if err != nil {
		return fmt.Errorf("servers' log: %w", err)
	}
	defer func() { err = errors.Join(err, servers.Close()) }()
	result, err := bench.RunOutage(ctx, bench.OutageRun{
		Exe: exe, Dir: c.Dir, Instances: c.Instances, Rate: c.Rate, Connections: c.Connections, Before: c.Before, Away: c.Away,
		After: c.After, Progress: os.Stderr, Log: servers,
	})
	if err != nil {
		return explainStack(err)
	}
	if err := result.Print(os.Stdout); err != nil {
		return err
	}
	fmt.Printf("\noutage.json and outage.svg are in %s\n", c.Dir)
	if c.Strict && !result.Met() {
		return exitStatus(1)
	}
	return nil
}

// benchBaselineCmd is the process that `bench` compares the service with.
type benchBaselineCmd struct {
	databaseConfig
	Conns int `required:"" help:"Connections to PostgreSQL."`
}

// Run serves until ctx ends.
func (c *benchBaselineCmd) Run(ctx context.Context, _ *slog.Logger) error {
	return bench.ServeBaseline(ctx, string(c.DatabaseURL), c.Conns, func(address string) { fmt.Println("baseline " + address) })
}
