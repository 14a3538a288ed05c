package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// OutageConfig configures the load on running instances, and contains the functions that kill and restart their
// Redis.
type OutageConfig struct {
	Instances   []Instance // at least one, configured with their number; the load is divided evenly
	AdminKey    string
	Rate        int // requests/s of all instances, outageRateMin..openRateMax: four checks for each consume
	Connections int // connections to all instances, at least one per instance

	Before, Away, After time.Duration // durations of the phases; After must be longer than a circuit breaker stays open

	// Drain is how long after the load a late request is still sent. A request that is later counts as unanswered.
	Drain time.Duration

	Kill func() error                // kills Redis
	Back func(context.Context) error // starts Redis again without data
	Info func(ctx context.Context, section string) (string, error)
}

// Instance contains the addresses of an instance of the service, as host:port.
type Instance struct{ API, Ops string }

const (
	outageTenants = 50       // tenants that check; no limit denies their checks
	outageBuckets = 10       // tenants among outageTenants that also consume
	outageRule    = "scarce" // the limit that denies half of the consumes
	outageRoute   = "/scarce"
	oneConsumeIn  = 5 // one of this number of requests is a consume

	// outageSlice is the resolution of the timeline. A slice that is longer than a request's wait for Redis would
	// hide the wait.
	outageSlice = 100 * time.Millisecond

	// outageWarmUp is the duration of the load before the measurement. During this time, connections, first periods and
	// pools are opened.
	outageWarmUp = time.Second

	outageRateMin = 500 // requests/s; with a lower rate, a bucket would get less than a few tokens per second

	infoTimeout = 50 * time.Millisecond // half of outageSlice
)

func (c *OutageConfig) validate() error {
	switch {
	case len(c.Instances) == 0:
		return errors.New("no instances")
	case c.Rate < outageRateMin || c.Rate > openRateMax:
		return fmt.Errorf("rate is %d; must be between %d and %d", c.Rate, outageRateMin, openRateMax)
	case c.Connections < len(c.Instances) || c.Connections > 4096:
		return fmt.Errorf("connections is %d; must be between %d and 4096", c.Connections, len(c.Instances))
	}
	for _, d := range []time.Duration{c.Before, c.Away, c.After} {
		if d < outageSlice || d > time.Minute {
			return fmt.Errorf("a phase is %s; must be between %s and 1m", d, outageSlice)
		}
	}
	return nil
}

// perSecond and burst return the parameters of the limit outageRule. It admits half of a tenant's consumes. Its burst
// is the number of tokens of half a second.
func (c *OutageConfig) perSecond() int { return c.Rate / oneConsumeIn / outageBuckets / 2 }
func (c *OutageConfig) burst() int     { return max(1, c.perSecond()/2) }

// shot is one request of the load and its result.
type shot struct {
	due     time.Duration // time at which the request was due, since the start of the load
	took    time.Duration // time from then until the answer
	status  int           // 0: no answer
	consume bool
	local   bool // whether the limits were decided without Redis
}

func (s *shot) admitted() bool { return s.consume && s.status == 200 }

// scriptCalls is a sample of Redis's counters: the script calls and the accepted connections since Redis started.
type scriptCalls struct {
	at                 time.Duration
	calls, connections int64
}

// outage is the state of a run.
type outage struct {
	cfg            *OutageConfig
	check, consume *template
	start          time.Time

	warm         handled       // handling times of the warm-up
	killed, back time.Duration // times since start: Redis was killed; Redis answered again
	samples      []scriptCalls
	stall        time.Duration
}

// Outage loads the instances, kills their Redis during the load, restarts it, and returns the effect on callers. It
// returns an error if a step or a measurement fails. The caller judges the result.
func Outage(ctx context.Context, cfg OutageConfig) (*OutageResult, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	if err := cfg.setUp(ctx); err != nil {
		return nil, err
	}
	auth := bearer(cfg.AdminKey)
	o := &outage{
		cfg: &cfg, check: newTemplate("/v1/check", auth, checkBody(tenantMark, plainRoute), 1),
		consume: newTemplate("/v1/consume", auth+keyHeader(), checkBody(tenantMark, outageRoute), 1),
	}
	var clients []*client
	defer func() { closeAll(clients) }()
	for i, in := range cfg.Instances {
		share := (cfg.Connections + i) / len(cfg.Instances)
		more, err := dial(ctx, in.API, share)
		if err != nil {
			return nil, err
		}
		clients = append(clients, more...)
	}
	shots, err := o.run(ctx, clients)
	if err != nil {
		return nil, err
	}
	after, err := cfg.handlingTimes(ctx)
	if err != nil {
		return nil, err
	}
	return o.summarize(shots, after.minus(o.warm)), nil
}

// setUp creates the tenants and limits of the load through the first instance.
func (c *OutageConfig) setUp(ctx context.Context) error {
	put := func(path, body string) error { return putJSON(ctx, c.Instances[0].API, c.AdminKey, path, body) }
	err := errors.Join(
		put("/v1/meters/"+meter, `{"unit":"call"}`),
		put("/v1/plans/outage", `{"allowances":[{"meter":"`+meter+`","amount":1000000000000,"every":"month","anchor":"calendar"}]}`),
	)
	for i := 0; i < outageTenants && err == nil; i++ {
		err = put("/v1/tenants/"+tenantID(i), `{"plan":"outage"}`)
	}
	err = errors.Join(err, putLimits(put))
	return errors.Join(err, put("/v1/limits/"+outageRule, fmt.Sprintf(
		`{"per":["tenant"],"match":{"route":"%s"},"kind":"token_bucket","rate":"%d/s","burst":%d}`, outageRoute, c.perSecond(), c.burst())))
}

// run runs the load, the outage and the sampling of Redis at the same time.
func (o *outage) run(ctx context.Context, clients []*client) ([]shot, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	total := outageWarmUp + o.cfg.Before + o.cfg.Away + o.cfg.After
	o.start = time.Now()
	var beside sync.WaitGroup
	var fault error
	beside.Go(func() {
		if fault = o.disrupt(ctx); fault != nil {
			cancel() // without an outage there is nothing to measure
		}
	})
	beside.Go(func() { o.ask(ctx, total) })
	beside.Go(func() { o.watchMachine(ctx, total) })
	shots, err := o.fire(ctx, clients, total)
	beside.Wait()
	return shots, errors.Join(fault, err)
}

// disrupt kills Redis and starts it again.
func (o *outage) disrupt(ctx context.Context) (err error) {
	if err := o.until(ctx, outageWarmUp); err != nil {
		return err
	}
	if o.warm, err = o.cfg.handlingTimes(ctx); err != nil {
		return err
	}
	if err := o.until(ctx, outageWarmUp+o.cfg.Before); err != nil {
		return err
	}
	if err := o.cfg.Kill(); err != nil {
		return fmt.Errorf("kill Redis: %w", err)
	}
	o.killed = time.Since(o.start)
	if err := o.until(ctx, outageWarmUp+o.cfg.Before+o.cfg.Away); err != nil {
		return err
	}
	if err := o.cfg.Back(ctx); err != nil {
		return fmt.Errorf("start Redis again: %w", err)
	}
	o.back = time.Since(o.start)
	return nil
}

// until waits until the given time has passed since the start of the load.
func (o *outage) until(ctx context.Context, at time.Duration) error {
	return wait(ctx, at-time.Since(o.start))
}

// ask samples Redis's counters once per slice. It skips slices in which Redis is down.
func (o *outage) ask(ctx context.Context, total time.Duration) {
	asked := int64(0) // calls of Info since the last sample; each call is one connection
	for at := time.Duration(0); at < total && o.until(ctx, at) == nil; at += outageSlice {
		once, cancel := context.WithTimeout(ctx, infoTimeout)
		calls, err := o.cfg.Info(once, "commandstats")
		stats, err2 := o.cfg.Info(once, "stats")
		cancel()
		if asked += 2; errors.Join(err, err2) == nil {
			s := scriptCalls{at: time.Since(o.start), connections: number(stats, "total_connections_received:") - asked}
			for _, name := range []string{"evalsha", "eval"} {
				s.calls += number(calls, "cmdstat_"+name+":calls=")
			}
			o.samples = append(o.samples, s)
			continue
		}
		asked = 0 // a new server counts from zero; a failed call of Info may not have connected
	}
}

// number returns the number that follows a name in Redis's INFO, or 0 if the name is missing.
func number(info, name string) (n int64) {
	_, rest, _ := strings.Cut(info, name)
	for _, c := range rest {
		if c < '0' || c > '9' {
			break
		}
		n = n*10 + int64(c-'0')
	}
	return n
}

// watchMachine measures the longest delay of this process's wake-ups. Such a delay is part of the measured latencies,
// but its cause is the machine.
func (o *outage) watchMachine(ctx context.Context, total time.Duration) {
	const nap = 5 * time.Millisecond
	for ctx.Err() == nil && time.Since(o.start) < total {
		began := time.Now()
		time.Sleep(nap)
		o.stall = max(o.stall, time.Since(began)-nap)
	}
}

// fire sends the load at its rate, independent of how long answers take.
func (o *outage) fire(ctx context.Context, clients []*client, total time.Duration) ([]shot, error) {
	n := int(float64(o.cfg.Rate) * total.Seconds())
	gap := time.Second / time.Duration(o.cfg.Rate)
	due := make(chan time.Duration, n) // so large that pace never waits for the service
	fired, errs := make([][]shot, len(clients)), make([]error, len(clients)+1)
	var wg sync.WaitGroup
	for i, c := range clients {
		wg.Go(func() {
			for at := range due {
				number := uint64(at / gap)
				s := shot{due: at, consume: number%oneConsumeIn == 0}
				t, tenants := o.check, outageTenants
				if s.consume {
					t, tenants = o.consume, outageBuckets
				}
				if time.Since(o.start) < total+o.cfg.Drain {
					s.status, errs[i] = c.send(t, number, tenants)
				}
				s.took, s.local = time.Since(o.start)-at, c.local
				fired[i] = append(fired[i], s)
				if errs[i] != nil {
					return
				}
			}
		})
	}
	pace(ctx, o.start, paceTick, o.cfg.Rate, n, due)
	close(due)
	wg.Wait()
	all := slices.Concat(fired...)
	// If a connection breaks, its request has no answer and is counted. Requests are only missing here if all
	// connections broke.
	if len(all) < n {
		errs[len(clients)] = fmt.Errorf("%d of %d requests were sent", len(all), n)
		return nil, errors.Join(errs...)
	}
	return all, ctx.Err()
}
