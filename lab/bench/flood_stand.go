package bench

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"
)

// FloodRun configures RunFlood: the programs that it starts, and the load.
type FloodRun struct {
	Programs
	Rate        int // debits/s of the other tenants
	Connections int
	Rounds      int
	Slice       time.Duration
}

// RunFlood starts PostgreSQL, Redis and the service, runs Flood on them and writes flood.json and flood.svg into Dir.
func RunFlood(ctx context.Context, run FloodRun) (_ *FloodResult, err error) {
	dir, remove, err := makeData(run.Dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, remove()) }()
	fmt.Fprintf(run.Progress, "starting PostgreSQL and Redis in %s\n", dir)
	s := &stand{cfg: Config{Programs: run.Programs, Connections: run.Connections}}
	defer func() { err = errors.Join(err, s.stop()) }()
	if err := s.startServers(ctx, dir); err != nil {
		return nil, err
	}
	machine, err := s.describe(ctx)
	if err != nil {
		return nil, err
	}
	if err := s.db.Close(ctx); err != nil { // the flood waits until only its own connection remains
		return nil, fmt.Errorf("close: %w", err)
	}
	s.db = nil
	at := &site{exe: run.Exe, databaseURL: s.postgres.URL(), redisURL: s.redis.URL()}
	if err := s.tool(ctx, at, "migrate", "up"); err != nil {
		return nil, err
	}
	elsewhere, err := url.Parse(s.postgres.URL())
	if err != nil {
		return nil, fmt.Errorf("URL of the database: %w", err)
	}
	elsewhere.Path = "/template1" // the flood waits until no other session uses the service's database
	if err := s.startBaseline(ctx, elsewhere.String(), 1); err != nil {
		return nil, err
	}
	fmt.Fprintf(run.Progress, "%d debits/s with and without floods, %d rounds; then the cost of each kind of refusal\n", run.Rate, run.Rounds)
	out, err := Flood(ctx, FloodConfig{
		Start: func(ctx context.Context) (string, func(context.Context) error, error) {
			if err := s.serve(ctx, at); err != nil {
				return "", nil, err
			}
			return at.api, func(ctx context.Context) error { return s.end(ctx, at) }, nil
		},
		Attack: func(ctx context.Context, a Attack) ([]map[int]int64, error) { return attackApart(ctx, run.Self, a) },
		Echo:   s.baseAt, Database: s.postgres.URL(), AdminKey: adminKey,
		Rate: run.Rate, Connections: run.Connections, Rounds: run.Rounds, Slice: run.Slice,
	})
	if err != nil {
		return nil, err
	}
	out.Machine = &machine
	return out, out.write(run.Dir)
}
