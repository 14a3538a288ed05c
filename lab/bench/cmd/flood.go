package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/quotasvc/quotasvc/lab/bench"
)

// floodCmd is the command that floods the service with refused requests.
type floodCmd struct {
	programConfig
	Rate        int           `default:"100" help:"Debits/s of other tenants. The flood has ten times as many requests. The machine must have idle CPU under both loads, or the result only shows its overload."`
	Connections int           `default:"128" help:"Connections of the others, and as many of the flood."`
	Rounds      int           `default:"3" help:"Rounds: each has every flood once, after an equally long slice without a flood."`
	Docs        string        `default:"docs" type:"path" help:"Directory of the documents."`
	Record      bool          `help:"Write the picture into the documents."`
	Slice       time.Duration `default:"6s" help:"Duration with or without a flood in a round."`
}

// Run measures, prints the results and stores them.
func (c *floodCmd) Run(ctx context.Context) error {
	return c.withLog(func(programs bench.Programs) error {
		result, err := bench.RunFlood(ctx, bench.FloodRun{
			Programs: programs, Rate: c.Rate, Connections: c.Connections, Rounds: c.Rounds, Slice: c.Slice,
		})
		if err != nil {
			return err
		}
		if err := result.Print(printer()); err != nil {
			return err
		}
		return c.finish(result, c.Record, c.Docs, os.Stdout, "flood.json and flood.svg")
	})
}

// attackCmd is the command that sends a flood in its own process. It reads an Attack from standard input and writes
// the answers to standard output.
type attackCmd struct{}

// Run sends the flood.
func (attackCmd) Run(ctx context.Context) error {
	var a bench.Attack
	if err := json.NewDecoder(os.Stdin).Decode(&a); err != nil {
		return fmt.Errorf("read the attack: %w", err)
	}
	answers, err := a.Run(ctx)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(answers)
}
