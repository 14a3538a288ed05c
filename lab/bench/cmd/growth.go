package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"time"

	"github.com/quotasvc/quotasvc/lab/bench"
)

// growthCmd is the command that measures how the cost of the service depends on the amount of stored data.
type growthCmd struct {
	programConfig
	Small        bool              `env:"GROWTH_SMALL" help:"Tiny sizes, to test that everything works. The figures are meaningless."`
	Full         bool              `env:"GROWTH_FULL" help:"A journal of 100M entries too, and 10M debits on each layout of balances. Needs about 60 GB of disk and some hours."`
	Only         []string          `placeholder:"STEP" help:"Measure only these steps: tenants, journal, instances, partitions, catalogue, balances, month-end."`
	Again        []string          `placeholder:"STEP" help:"Measure these steps again although their results are stored."`
	Tenants      []int             `env:"GROWTH_TENANTS" placeholder:"N" help:"Numbers of tenants, the smallest first."`
	Entries      []int             `env:"GROWTH_ENTRIES" placeholder:"N" help:"Numbers of entries of the journal."`
	Instances    []int             `env:"GROWTH_INSTANCES" placeholder:"N" help:"Numbers of instances."`
	Months       []int             `env:"GROWTH_MONTHS" placeholder:"N" help:"Months of partitions."`
	Rules        []int             `env:"GROWTH_RULES" placeholder:"N" help:"Rules of the catalogue."`
	Fillfactors  []int             `env:"GROWTH_FILLFACTORS" placeholder:"N" help:"Fillfactors of balances. With one, only it is measured, and beside an open snapshot."`
	Debits       int               `env:"GROWTH_DEBITS" placeholder:"N" help:"Debits on each layout of balances."`
	MonthTenants int               `env:"GROWTH_MONTH_TENANTS" placeholder:"N" help:"Tenants whose period ends."`
	MonthRate    int               `env:"GROWTH_MONTH_RATE" placeholder:"N" help:"Live debits/s beside a month's end."`
	Rounds       int               `placeholder:"N" help:"Rounds of all sizes."`
	Slice        time.Duration     `placeholder:"DURATION" help:"Duration of a size as fast as possible, in a round."`
	OpenFor      time.Duration     `placeholder:"DURATION" help:"Duration of a size at the fixed rate, in a round."`
	Rate         int               `default:"2000" help:"Fixed rate for measuring latency, in requests/s."`
	Connections  int               `default:"128" help:"Connections of the load generator."`
	DiskShare    float64           `default:"0.5" help:"Part of the free disk that a step may use. Larger sizes are left out."`
	PostgreSQL   map[string]string `name:"postgresql" placeholder:"SETTING=VALUE" help:"Settings of PostgreSQL, for example shared_buffers=4GB. Default: shared_buffers of a quarter of the machine's memory."`
	Docs         string            `default:"docs" type:"path" help:"Directory of the documents."`
	Record       bool              `help:"Write the results and the pictures into the documents. Needs all steps."`
	Markdown     bool              `help:"Print the tables for a page of the documents."`
}

// sizes returns the chosen preset of sizes. Sizes on the command line replace sizes of the preset.
func (c *growthCmd) sizes() bench.GrowthSizes {
	z := bench.GrowthMedium
	switch {
	case c.Small:
		z = bench.GrowthTiny
	case c.Full:
		z = bench.GrowthFull
	}
	for _, d := range []struct {
		given []int
		to    *[]int
	}{{c.Tenants, &z.Tenants}, {c.Entries, &z.Entries}, {c.Instances, &z.Instances}, {c.Months, &z.Months}, {c.Rules, &z.Rules}, {c.Fillfactors, &z.Fillfactors}} {
		if len(d.given) > 0 {
			*d.to = d.given
		}
	}
	z.Debits = cmp.Or(c.Debits, z.Debits)
	z.MonthTenants = cmp.Or(c.MonthTenants, z.MonthTenants)
	z.MonthRate = cmp.Or(c.MonthRate, z.MonthRate)
	return z
}

// Run measures the missing steps, prints the results and stores them.
func (c *growthCmd) Run(ctx context.Context) error {
	rounds, slice, openFor := 5, 1500*time.Millisecond, 2500*time.Millisecond
	if c.Small {
		rounds, slice, openFor = 1, 200*time.Millisecond, 300*time.Millisecond
	}
	rounds = cmp.Or(c.Rounds, rounds)
	slice = cmp.Or(c.Slice, slice)
	openFor = cmp.Or(c.OpenFor, openFor)
	if settings := bench.MemoryQuarter(); !c.Small && len(settings) > 0 {
		maps.Copy(settings, c.PostgreSQL)
		c.PostgreSQL = settings
	}
	return c.withLog(func(programs bench.Programs) error {
		result, err := bench.Growth(ctx, bench.GrowthConfig{
			Programs: programs, Sizes: c.sizes(), Only: c.Only, Again: c.Again,
			Connections: c.Connections, Rate: c.Rate, Rounds: rounds, Slice: slice, OpenFor: openFor,
			DiskShare: c.DiskShare, PostgreSQL: c.PostgreSQL,
		})
		if err != nil {
			return fmt.Errorf("%w (finished steps are stored; the next run continues)", err)
		}
		if c.Markdown {
			err = result.Markdown(os.Stdout)
		} else {
			err = result.Print(printer())
		}
		if err != nil {
			return err
		}
		return c.finish(result, c.Record, c.Docs, os.Stderr, "growth.json and growth-*.svg")
	})
}
