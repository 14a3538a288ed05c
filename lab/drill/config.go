package drill

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"
)

// Config configures a run.
type Config struct {
	Exe       string // the binary of quotasvc; required
	Results   string // directory of drill.json and the chart; empty: no files are written
	Seed      uint64 // seed of the schedule and of the clients' choices
	Kills     int    // SIGKILLs of instances, PostgreSQL servers and Redis, without the kills of failovers
	Failovers int
	Others    int // number of the faults in otherActions, which come in turn
	Restores  int // number of backups that are restored to an instant
	Instances int
	Clients   int
	Tenants   int
	Pace      time.Duration // pause of a client between two operations
	Calm      time.Duration // longest pause between two faults; each pause is at least a fifth of Calm

	// Tamper is called with the primary's URL after the faults and before the comparison. Tests of the drill use it
	// to change the journal. Nil: no call.
	Tamper func(ctx context.Context, databaseURL string) error

	Progress io.Writer // gets a line every progressEvery, and a line for each rare fault
	Log      io.Writer // output of the instances
}

// These constants limit the configuration of a run. Without them, a run with a mistyped number could take a day.
const (
	killsMax     = 100_000
	failoversMax = 10_000
	othersMax    = 10_000
	restoresMax  = 1000
	instancesMax = 16
	clientsMax   = 1000
)

// progressEvery is the interval of progress lines.
const progressEvery = 10 * time.Second

func (c *Config) validate() error {
	var errs []error
	between := func(name string, n, low, high int) {
		if n < low || n > high {
			errs = append(errs, fmt.Errorf("%s is %d; must be between %d and %d", name, n, low, high))
		}
	}
	between("kills", c.Kills, 0, killsMax)
	between("failovers", c.Failovers, 0, failoversMax)
	between("others", c.Others, 0, othersMax)
	between("restores", c.Restores, 0, restoresMax)
	between("instances", c.Instances, 2, instancesMax)
	between("clients", c.Clients, 1, clientsMax)
	between("tenants", c.Tenants, 1, clientsMax)
	if c.Pace < 0 || c.Calm <= 0 {
		errs = append(errs, errors.New("pace must not be negative, and calm must be positive"))
	}
	return errors.Join(errs...)
}
