package bench

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// OutageRun configures RunOutage: the programs that it starts, and the load.
type OutageRun struct {
	Programs
	Instances   int // 1..16
	Rate        int // requests/s
	Connections int
	Before      time.Duration
	Away        time.Duration
	After       time.Duration
}

const instancesMax = 16

// RunOutage starts PostgreSQL, Redis and the instances, runs Outage on them and writes outage.json and outage.svg into
// Dir.
func RunOutage(ctx context.Context, run OutageRun) (_ *OutageResult, err error) {
	if run.Instances < 1 || run.Instances > instancesMax {
		return nil, fmt.Errorf("instances is %d; allowed are 1 to %d", run.Instances, instancesMax)
	}
	dir, remove, err := makeData(run.Dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, remove()) }()
	fmt.Fprintf(run.Progress, "starting PostgreSQL, Redis and %d instances in %s\n", run.Instances, dir)
	s := &stand{cfg: Config{Programs: run.Programs, Connections: run.Connections}}
	defer func() { err = errors.Join(err, s.stop()) }()
	instances, err := s.openInstances(ctx, dir, run.Instances)
	if err != nil {
		return nil, err
	}
	machine, err := s.describe(ctx)
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(run.Progress, "%d requests/s for %s, then without Redis for %s, then with it for %s\n", run.Rate, run.Before, run.Away, run.After)
	out, err := Outage(ctx, OutageConfig{
		Instances: instances, AdminKey: adminKey, Rate: run.Rate, Connections: run.Connections,
		Before: run.Before, Away: run.Away, After: run.After, Drain: drainMax,
		Kill: s.redis.Kill, Back: s.redis.Start, Info: s.redis.Info,
	})
	if err != nil {
		return nil, err
	}
	out.Machine = &machine
	return out, out.write(run.Dir)
}

// openInstances starts n instances of the service, which share one empty database and one Redis.
func (s *stand) openInstances(ctx context.Context, dir string, n int) ([]Instance, error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if err := s.startServers(ctx, dir); err != nil {
		return nil, err
	}
	at := site{exe: s.cfg.Exe, databaseURL: s.postgres.URL(), redisURL: s.redis.URL()}
	if err := s.tool(ctx, &at, "migrate", "up"); err != nil {
		return nil, err
	}
	var out []Instance
	for range n {
		instance := at
		if err := s.serve(ctx, &instance, fmt.Sprintf("QUOTASVC_REPLICAS=%d", n)); err != nil {
			return nil, err
		}
		out = append(out, Instance{API: instance.api, Ops: instance.ops})
	}
	return out, nil
}
