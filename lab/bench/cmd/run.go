package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"time"

	"github.com/quotasvc/quotasvc/lab/bench"
	"github.com/quotasvc/quotasvc/lab/bench/report"
)

// runCmd is the command that measures throughput and latency.
type runCmd struct {
	programConfig
	Full        bool          `help:"Measure for about eight minutes instead of three: more and longer rounds."`
	Rounds      int           `placeholder:"N" help:"Rounds of all variants."`
	Slice       time.Duration `placeholder:"DURATION" help:"Duration of a variant in a round."`
	OpenFor     time.Duration `placeholder:"DURATION" help:"Duration of each fixed rate."`
	Connections int           `default:"256" help:"Connections of the load generator."`
	Tenants     int           `default:"10000" help:"Number of tenants in the load."`
	InUse       int           `default:"200000" help:"Further tenants that get their first debit and a check after the rounds, to measure first debits and memory. 0: none."`
	Batch       int           `default:"500" help:"Debits in one batch request."`
	Rates       []int         `default:"1000,5000,10000" help:"Fixed rates for measuring latency, in requests/s."`
	Only        []string      `placeholder:"TEXT" sep:"none" help:"Measure only the variants with this text in their names, or \"tenants in use\". May be repeated."`
	Profile     time.Duration `placeholder:"DURATION" help:"After the rounds, store a CPU profile of the service under each of its variants, and its heap with many tenants in use."`
	Docs        string        `default:"docs" type:"path" help:"Directory of the documents, with the record of an earlier run."`
	Record      bool          `help:"Write the record and the pictures into the documents, for later runs to compare with."`
	Against     string        `placeholder:"FILE" type:"existingfile" help:"Another binary of quotasvc to measure in the same rounds, to show the effect of a change."`
}

// Run measures, prints the results and stores them.
func (c *runCmd) Run(ctx context.Context) error {
	rounds, slice, openFor := 3, 1200*time.Millisecond, 3*time.Second
	if c.Full {
		rounds, slice, openFor = 9, 3*time.Second, 12*time.Second
	}
	rounds = cmp.Or(c.Rounds, rounds)
	slice = cmp.Or(c.Slice, slice)
	openFor = cmp.Or(c.OpenFor, openFor)
	last, err := report.Last(c.Docs)
	if err != nil {
		return err
	}
	return c.withLog(func(programs bench.Programs) error {
		results, err := bench.Run(ctx, bench.Config{
			Programs: programs, Rounds: rounds, Slice: slice, OpenFor: openFor, Connections: c.Connections,
			Tenants: c.Tenants, InUse: c.InUse, Batch: c.Batch, Rates: c.Rates, Only: c.Only, Profile: c.Profile, Against: c.Against,
		})
		if err != nil {
			return err
		}
		p := printer()
		p.Last = last
		if err := p.Results(results); err != nil {
			return err
		}
		if c.Record {
			if err := results.Keep(c.Docs); err != nil {
				return err
			}
			fmt.Fprintf(os.Stdout, "\nthe record and the pictures in %s are of this run\n", c.Docs)
		}
		fmt.Fprintf(os.Stdout, "\nresults.json and charts are in %s\n", c.Dir)
		if c.Strict && !results.Met() {
			return errMissed
		}
		return nil
	})
}
