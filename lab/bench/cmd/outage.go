package main

import (
	"context"
	"os"
	"time"

	"github.com/quotasvc/quotasvc/lab/bench"
)

// outageCmd is the command that kills Redis under load.
type outageCmd struct {
	programConfig
	Rate        int           `default:"5000" help:"Requests/s over all instances: four checks for each consume."`
	Instances   int           `default:"2" help:"Instances of the service. They divide a limit while Redis is down."`
	Connections int           `default:"256" help:"Connections of the load generator."`
	Before      time.Duration `default:"5s" help:"Duration of the load before Redis is killed."`
	Away        time.Duration `default:"8s" help:"Time until Redis is started again."`
	Docs        string        `default:"docs" type:"path" help:"Directory of the documents."`
	Record      bool          `help:"Write the picture into the documents."`
	After       time.Duration `default:"12s" help:"Duration of the load after Redis is started again. Instances retry Redis every 5 s."`
}

// Run measures, prints the results and stores them.
func (c *outageCmd) Run(ctx context.Context) error {
	return c.withLog(func(programs bench.Programs) error {
		result, err := bench.RunOutage(ctx, bench.OutageRun{
			Programs: programs, Instances: c.Instances, Rate: c.Rate, Connections: c.Connections,
			Before: c.Before, Away: c.Away, After: c.After,
		})
		if err != nil {
			return err
		}
		if err := result.Print(printer()); err != nil {
			return err
		}
		return c.finish(result, c.Record, c.Docs, os.Stdout, "outage.json and outage.svg")
	})
}
