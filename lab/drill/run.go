package drill

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"sync"
	"time"

	"github.com/quotasvc/quotasvc/internal/lab/localstack"
)

// drill is the state of a run.
type drill struct {
	cfg    *Config
	pair   *pair
	redis  *cache
	limits *limits
	away   []outage
	fleet  *fleet
	memory *memory
	backup backup
	out    *Result
	start  time.Time
}

// Run starts the servers, the instances and the clients, and injects the faults of the schedule. Then it compares the
// clients' records with the journal. It returns an error if a step failed. Broken promises are in the result.
func Run(ctx context.Context, cfg Config) (_ *Result, err error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	search := localstack.SystemSearch()
	bin, err := search.Postgres(ctx, 0)
	if err != nil {
		return nil, err
	}
	const prefix = "quotasvc-drill-"
	localstack.RemoveStale(prefix)
	root, err := localstack.TempDir(ctx, prefix, bin)
	if err != nil {
		return nil, err
	}
	d := &drill{cfg: &cfg, memory: newMemory(), limits: newLimits(&cfg), out: newResult(&cfg)}
	defer func() { err = errors.Join(err, d.stop(), os.RemoveAll(root)) }()
	d.say("seed %d: %d kills, %d failovers, %d other faults, %d restores; data in %s",
		cfg.Seed, cfg.Kills, cfg.Failovers, cfg.Others, cfg.Restores, root)
	if err := d.startAll(ctx, root); err != nil {
		return nil, err
	}
	if err := d.drill(ctx); err != nil {
		return nil, err
	}
	if cfg.Results != "" {
		err = d.out.write(cfg.Results)
	}
	return d.out, err
}

// startAll starts the servers and the instances, and creates the catalogue.
func (d *drill) startAll(ctx context.Context, root string) (err error) {
	if d.pair, err = startPair(ctx, root); err != nil {
		return err
	}
	if d.redis, err = startCache(ctx, root); err != nil {
		return err
	}
	if _, err := d.tool(ctx, d.pair.url(), "migrate", "up"); err != nil {
		return err
	}
	if d.fleet, err = startFleet(ctx, d.cfg, d.pair.url(), d.redis.url()); err != nil {
		return err
	}
	return d.makeCatalogue(ctx)
}

// makeCatalogue creates the tenants of the load. They have many units of one meter. They have few units of a prepaid
// meter, so that some debits are denied.
func (d *drill) makeCatalogue(ctx context.Context) error {
	c := newClients(d.cfg, d.fleet, d.memory)[0]
	defer c.http.CloseIdleConnections()
	api := d.fleet.slots[0].api()
	put := func(path, body string) error {
		if a := c.do(ctx, api, http.MethodPut, path, "set-up", body, nil); outcomeOf(a) != Done {
			return fmt.Errorf("put %s: %d %s", path, a.status, a.code)
		}
		return nil
	}
	err := errors.Join(
		put("/v1/meters/calls", `{"unit":"call"}`), put("/v1/meters/credits", `{"unit":"credit"}`),
		put("/v1/plans/drill", `{"allowances":[{"meter":"calls","amount":1000000000,"every":"year","anchor":"calendar"},`+
			`{"meter":"credits","amount":100,"every":"year","anchor":"calendar"}]}`),
		put("/v1/limits/tenant", `{"per":["tenant"],"kind":"token_bucket","rate":"50/s","burst":50}`),
	)
	for _, each := range limitKinds {
		err = errors.Join(err, put("/v1/limits/"+each.kind, fmt.Sprintf(`{"per":["tenant","subject"],"kind":%q,%s}`, each.kind, each.terms)))
	}
	for i := 0; i < d.cfg.Tenants && err == nil; i++ {
		err = put("/v1/tenants/"+tenantName(i), `{"plan":"drill"}`)
	}
	return err
}

// drill runs the clients and the faults at the same time, and then compares the records with the journal.
func (d *drill) drill(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	d.start = time.Now()
	stop := make(chan struct{})
	var clients, watch sync.WaitGroup
	for _, c := range newClients(d.cfg, d.fleet, d.memory) {
		clients.Go(func() { c.work(ctx, stop, c.next) })
	}
	for _, c := range d.limits.newChargers(d.cfg, d.fleet, d.memory) {
		clients.Go(func() { c.work(ctx, stop, func(ctx context.Context) { d.limits.use(ctx, c) }) })
	}
	watch.Go(func() { d.watch(ctx, stop) })
	err := d.inject(ctx)
	close(stop)
	watch.Wait()
	if err != nil {
		cancel()
	}
	clients.Wait()
	if err != nil {
		return err
	}
	return d.judge(ctx)
}

// inject executes all steps of the schedule.
func (d *drill) inject(ctx context.Context) error {
	for _, s := range plan(d.cfg) {
		if err := sleep(ctx, s.after); err != nil {
			return err
		}
		began := time.Now()
		if err := d.fault(ctx, s); err != nil {
			return fmt.Errorf("%s: %w", s.do, err)
		}
		d.out.fault(s.do, began.Sub(d.start), time.Since(began))
	}
	return sleep(ctx, d.cfg.Calm)
}

// fault executes one step of the schedule.
func (d *drill) fault(ctx context.Context, s step) error {
	switch s.do {
	case KillInstance:
		return d.fleet.kill(ctx, s.target, s.length)
	case PauseInstance:
		return d.fleet.pause(ctx, s.target, s.length)
	case KillPrimary:
		return killed(ctx, d.pair.primary, s.length)
	case KillStandby:
		return killed(ctx, d.pair.standby, s.length)
	case PausePrimary:
		return paused(ctx, d.pair.primary, s.length)
	case PauseStandby:
		return paused(ctx, d.pair.standby, s.length)
	case KillRedis, PauseRedis, RefuseWrites, FailoverRedis, KillWithoutRedis:
		return d.withoutRedis(ctx, s)
	case StallLog, KillLogStalled, StopLogStalled:
		return d.fleet.stallLog(ctx, d.memory, s)
	case Strangers:
		return d.fleet.flood(ctx, d.memory, s.length)
	case Rolling:
		return d.fleet.roll(ctx)
	case Failover, FailoverPaused, FailoverDead, FailoverPrimaryUp:
		return d.pair.failover(ctx, s.do, s.length)
	case Backup:
		var err error
		d.backup, err = d.pair.backUp(ctx)
		return err
	case Restore:
		return d.restore(ctx)
	}
	return fmt.Errorf("unknown fault %q", s.do)
}

// withoutRedis executes a fault of Redis and remembers its time.
func (d *drill) withoutRedis(ctx context.Context, s step) error {
	wait := func() error { return sleep(ctx, s.length) }
	meanwhile := wait
	if s.do == KillWithoutRedis {
		meanwhile = func() error { return errors.Join(wait(), d.fleet.kill(ctx, s.target, s.length), wait()) }
	}
	o, err := d.redis.away(ctx, s.do, meanwhile)
	d.away = append(d.away, o)
	return err
}

func killed(ctx context.Context, s *localstack.Postgres, away time.Duration) error {
	if err := s.Kill(); err != nil {
		return err
	}
	if err := sleep(ctx, away); err != nil {
		return err
	}
	return s.Start(ctx)
}

func paused(ctx context.Context, s *localstack.Postgres, d time.Duration) error {
	if err := s.Pause(); err != nil {
		return err
	}
	return errors.Join(sleep(ctx, d), s.Resume())
}

// restore restores the backup to the present instant while the load continues, and checks the restored cluster.
func (d *drill) restore(ctx context.Context) error {
	instant := time.Now()
	// Recovery ends at the first commit after the instant. The pause gives the clients time for such a commit.
	if err := sleep(ctx, 2*time.Second); err != nil {
		return err
	}
	remembered := d.memory.operations()
	return d.pair.restore(ctx, d.backup, instant, func(ctx context.Context, url string) error {
		j, err := readJournal(ctx, url)
		if err != nil {
			return err
		}
		f := compareAt(remembered, j, instant)
		report, err := d.tool(ctx, url, "verify", "--full")
		d.out.Restores = append(d.out.Restores, Restored{Instant: instant, Findings: f, Verified: err == nil})
		d.say("restored %d operations of the journal: %d violations; verify: %s", len(j), f.Violations(), lastLine(report))
		return nil
	})
}

// tool runs a command of quotasvc on a database, without Redis, and returns its output.
func (d *drill) tool(ctx context.Context, url string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, d.cfg.Exe, args...)
	cmd.Env = append(os.Environ(), "QUOTASVC_DATABASE_URL="+url, "QUOTASVC_REDIS_URL=", "QUOTASVC_LOG_LEVEL=warn")
	out, err := cmd.CombinedOutput()
	if err != nil {
		return string(out), fmt.Errorf("%v: %w\n%s", args, err, out)
	}
	return string(out), nil
}

// judge compares the clients' records with the journal. It then sends the open operations again, and compares once
// more.
func (d *drill) judge(ctx context.Context) error {
	d.say("faults are over: comparing")
	if d.cfg.Tamper != nil {
		if err := d.cfg.Tamper(ctx, d.pair.primary.URL()); err != nil {
			return err
		}
	}
	before, err := readJournal(ctx, d.pair.primary.URL())
	if err != nil {
		return err
	}
	d.out.AtOnce = compare(d.memory.operations(), before)
	open := d.memory.tally()[Open]
	if err := d.resolve(ctx); err != nil {
		return err
	}
	after, err := readJournal(ctx, d.pair.primary.URL())
	if err != nil {
		return err
	}
	d.out.AtEnd = compare(d.memory.operations(), after)
	d.out.Opened, d.out.StillOpen = open, d.memory.tally()[Open]
	if err := d.lookAtAll(ctx); err != nil {
		return err
	}
	report, err := d.tool(ctx, d.pair.url(), "verify", "--full")
	d.out.Verified, d.out.VerifyReport = err == nil, report
	d.out.Took = time.Since(d.start)
	d.out.remember(d.memory, d.fleet)
	d.out.Limits = d.limits.judge(d.fleet.lives, d.away)
	return nil
}

// resolve sends every open operation again with its key, until the operation has a final answer.
func (d *drill) resolve(ctx context.Context) error {
	c := newClients(d.cfg, d.fleet, d.memory)[0]
	defer c.http.CloseIdleConnections()
	d.memory.mu.Lock()
	all := d.memory.all
	d.memory.mu.Unlock()
	for _, op := range all {
		if op.Outcome == Open {
			c.insist(ctx, op, patience)
		}
	}
	return ctx.Err()
}

// lookAtAll reads every balance. No amount may be below zero.
func (d *drill) lookAtAll(ctx context.Context) error {
	c := newClients(d.cfg, d.fleet, d.memory)[0]
	defer c.http.CloseIdleConnections()
	for i := range d.cfg.Tenants {
		var page struct {
			Items []struct{ Granted, Used, Held, Remaining int64 }
		}
		a := c.do(ctx, d.fleet.slots[0].api(), http.MethodGet, "/v1/tenants/"+tenantName(i)+"/balances", "", "", &page)
		if a.status != http.StatusOK || len(page.Items) == 0 {
			return fmt.Errorf("balances of %s: %d %s", tenantName(i), a.status, a.code)
		}
		for _, b := range page.Items {
			if min(b.Granted, b.Used, b.Held, b.Remaining) < 0 {
				d.memory.change(func() { d.memory.negative++ })
			}
		}
	}
	return nil
}

// stop stops all servers and instances of the run.
func (d *drill) stop() error {
	var errs error
	if d.fleet != nil {
		errs = errors.Join(errs, d.fleet.stop())
	}
	if d.redis != nil {
		errs = errors.Join(errs, d.redis.stop())
	}
	if d.pair != nil {
		errs = errors.Join(errs, d.pair.stop())
	}
	return errs
}

func (d *drill) say(format string, args ...any) { fmt.Fprintf(d.cfg.Progress, format+"\n", args...) }
