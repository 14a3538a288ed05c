package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/quotasvc/quotasvc/lab/bench"
)

// postgresCmd is the command that compares settings of PostgreSQL.
type postgresCmd struct {
	programConfig
	Rounds      int           `default:"3" help:"Rounds: each has every setting once, after the base of its group."`
	Slice       time.Duration `default:"2s" help:"Duration of single debits of a setting in a round. Batches run half as long."`
	OpenFor     time.Duration `default:"2s" help:"Duration of debits at the fixed rate."`
	Rate        int           `default:"1000" help:"The fixed rate, in debits/s, for p99."`
	Connections int           `default:"128" help:"Connections of the load generator."`
	Tenants     int           `default:"10000" help:"Number of tenants in the load."`
	Batch       int           `default:"500" help:"Debits in one batch request."`
	Only        []string      `placeholder:"TEXT" sep:"none" help:"Measure only the settings with this text in \"group: setting\", and the bases of their groups. May be repeated."`
	Markdown    bool          `help:"Print the table as Markdown."`
	Docs        string        `default:"docs" type:"path" help:"Directory of the documents."`
	Record      bool          `help:"Write the picture into the documents."`
}

// Run measures, prints the results and stores them.
func (c *postgresCmd) Run(ctx context.Context) error {
	return c.withLog(func(programs bench.Programs) error {
		result, err := bench.RunPostgres(ctx, bench.Config{
			Programs: programs, Rounds: c.Rounds, Slice: c.Slice, OpenFor: c.OpenFor, Rates: []int{c.Rate},
			Connections: c.Connections, Tenants: c.Tenants, Batch: c.Batch, Only: c.Only,
		})
		if err != nil {
			return err
		}
		if c.Record {
			if err := result.Keep(c.Docs); err != nil {
				return err
			}
		}
		if c.Markdown {
			result.Markdown(os.Stdout)
			return nil
		}
		if err := result.Print(printer()); err != nil {
			return err
		}
		fmt.Fprintf(os.Stdout, "\npostgres.json and postgres.svg are in %s\n", c.Dir)
		return nil
	})
}
