package bench

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/quotasvc/quotasvc/lab/bench/growth"
	"github.com/quotasvc/quotasvc/lab/bench/past"
)

const (
	// monthEvery is the unit of the period that ends. A roll does the same work for each unit. The unit is a day,
	// because all days have the same length.
	monthEvery = "day"

	// monthEach is an estimate of the time to write a balance, and monthStart of the time to start the service. Both
	// are twice the times measured on two cores. The end of the period is computed from them. If the period ends too
	// early, the run is repeated with twice the time that it needed. There are at most monthTries attempts.
	monthEach  = 120 * time.Microsecond
	monthStart = 3 * time.Second
	monthTries = 4

	rollsMax = 5 // maximum number of runs; a second run is needed if the first skipped rows that debits had locked
)

// month measures live debits around the end of the period of many balances. There are four phases: before the end,
// while only debits roll balances, during the job, and after the job.
func (g *grower) month(ctx context.Context) (out growth.Step, err error) {
	z := &g.cfg.Sizes
	m := &growth.Month{Tenants: z.MonthTenants, Rate: z.MonthRate}
	out.Month = m
	lead := time.Duration(z.MonthTenants)*monthEach + monthStart
	for try := 1; ; try++ {
		end := time.Now().Add(lead + z.Quiet + z.Quiet/2).UTC().Truncate(time.Millisecond)
		s, err := g.beforeMonth(ctx, end)
		if err != nil {
			return out, err
		}
		spare := time.Until(end) - z.Quiet - z.Quiet/2
		if spare < 0 && try < monthTries {
			lead = 2 * (lead - spare)
			g.say("the balances were written %s too late; once more with %s", (-spare).Round(time.Millisecond), lead)
			if err := g.clear(); err != nil {
				return out, err
			}
			continue
		}
		if spare < 0 {
			return out, fmt.Errorf("the balances were written %s too late for a quiet time before their period's end; fewer tenants (--month-tenants) take less time", -spare)
		}
		g.say("waiting %s, for a quiet time before the period's end", spare.Round(time.Second))
		if err := wait(ctx, spare); err != nil {
			return out, err
		}
		return out, g.passMonth(ctx, s, m, end)
	}
}

// beforeMonth writes the balances whose period ends at the given instant, and starts the service.
func (g *grower) beforeMonth(ctx context.Context, end time.Time) (*grown, error) {
	n := g.cfg.Sizes.MonthTenants
	h := past.Journal{Tenants: n, Debits: 1, Anchor: end.AddDate(0, 0, -1), End: end, Every: monthEvery, From: end.AddDate(0, 0, -1).Add(time.Minute), Span: time.Hour}
	s, err := g.add(ctx, nil, growth.Label(int64(n), "tenants"), float64(n), h, 0.3)
	if err != nil {
		return nil, err
	}
	if err := g.start(ctx, s, 1); err != nil {
		return nil, err
	}
	if _, err := g.stand.db.Exec(ctx, "CHECKPOINT"); err != nil {
		return nil, fmt.Errorf("checkpoint: %w", err)
	}
	return s, nil
}

// passMonth runs the load from before the period's end until after the roll.
func (g *grower) passMonth(ctx context.Context, s *grown, m *growth.Month, end time.Time) error {
	quiet := g.cfg.Sizes.Quiet
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	line := &timeline{}
	loadCtx, stop := context.WithCancel(ctx)
	var r sample
	var loadErr error
	var load sync.WaitGroup
	began := time.Now()
	load.Go(func() { r, loadErr = g.monthLoad(loadCtx, s, line) })
	err := g.rollAfter(ctx, s, m, began, end)
	if err == nil {
		err = wait(ctx, quiet)
	}
	stop()
	load.Wait()
	if !errors.Is(loadErr, context.Canceled) {
		err = errors.Join(err, loadErr)
	}
	if err != nil {
		return err
	}
	m.Errors = r.errors
	line.phases(m, (quiet / 2).Seconds())
	closed, err := g.count(ctx, s, "SELECT count(*) FROM periods")
	if err != nil {
		return err
	}
	m.Lazily = max(0, closed-m.Rolled)
	g.say("verifying")
	return g.stand.tool(ctx, s.at[0], "verify")
}

// monthMax is the maximum duration of the load, for the case that the roll does not end.
const monthMax = time.Hour

func (g *grower) monthLoad(ctx context.Context, s *grown, line *timeline) (sample, error) {
	t := newTemplate("/v1/debits", bearer(adminKey)+keyHeader(), debitBody(tenantMark), 1)
	clients, err := dial(ctx, s.at[0].api, g.cfg.Connections)
	if err != nil {
		return sample{}, err
	}
	defer closeAll(clients)
	return openLoop(ctx, clients, &g.seq, steady{t: t, tenants: s.tenants, rate: g.cfg.Sizes.MonthRate, d: monthMax, drain: drainMax, tick: paceTick, watch: line.note})
}

// rollAfter waits for the period's end, and then for some time in which only debits roll balances. Then it runs
// `quotasvc roll` until no balance is due.
func (g *grower) rollAfter(ctx context.Context, s *grown, m *growth.Month, began, end time.Time) error {
	if err := wait(ctx, time.Until(end)); err != nil {
		return err
	}
	m.Ended = time.Since(began).Seconds()
	g.at(0.5)
	g.say("the period has ended; debits roll what they touch")
	if err := wait(ctx, g.cfg.Sizes.Quiet); err != nil {
		return err
	}
	const due = "SELECT count(*) FROM balances WHERE coalesce(roll_at, next_event_at) <= now()"
	before, err := g.count(ctx, s, due)
	if err != nil {
		return err
	}
	g.say("quotasvc roll: %d balances are due", before)
	m.JobFrom = time.Since(began).Seconds()
	left := before
	for run := 0; left > 0; run++ {
		if run == rollsMax {
			return fmt.Errorf("%d balances are still due after %d rolls", left, rollsMax)
		}
		if err := g.roll(ctx, s, left); err != nil {
			return err
		}
		if left, err = g.count(ctx, s, due); err != nil {
			return err
		}
	}
	m.JobTo = time.Since(began).Seconds()
	m.Job = m.JobTo - m.JobFrom
	var rolled int64
	if err := g.ask(ctx, s, "SELECT coalesce(sum(processed), 0)::bigint FROM rolls", &rolled); err != nil {
		return err
	}
	m.Rolled = rolled
	g.at(0.9)
	g.say("%d balances were rolled in %.1f s", rolled, m.Job)
	return nil
}

// roll runs `quotasvc roll` and reports its progress.
func (g *grower) roll(ctx context.Context, s *grown, due int64) error {
	done := make(chan error, 1)
	go func() { done <- g.stand.tool(ctx, s.at[0], "roll") }()
	tick := time.NewTicker(10 * time.Second)
	defer tick.Stop()
	for {
		select {
		case err := <-done:
			return err
		case <-tick.C:
			processed, err := g.count(ctx, s, "SELECT coalesce(max(processed), 0)::bigint FROM rolls WHERE status = 'running'")
			if err != nil {
				return errors.Join(err, <-done)
			}
			g.at(0.5 + 0.4*float64(processed)/float64(due))
			g.say("%d of %d balances are rolled", processed, due)
		}
	}
}

// timeline collects latencies. It groups them by the second in which the request was due.
type timeline struct {
	mu    sync.Mutex
	spans []*hdrhistogram.Histogram
}

func (l *timeline) note(due, took time.Duration) {
	at := int(due / time.Second)
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.spans) <= at {
		l.spans = append(l.spans, hdrhistogram.New(1, latencyMaxMicros, 2))
	}
	_ = l.spans[at].RecordValue(min(max(took.Microseconds(), 1), latencyMaxMicros)) // within the histogram's bounds
}

// phases divides the timeline at the end of the period and at the start and the end of the job. The first seconds
// belong to no phase, because the connections are opened in them. A second that belongs to two phases counts for the
// later phase.
func (l *timeline) phases(m *growth.Month, skip float64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for at, h := range l.spans {
		m.Moments = append(m.Moments, growth.Phase{At: float64(at), Debits: h.TotalCount(), Latency: percentilesOf(h)})
	}
	for _, p := range []struct {
		name     string
		from, to float64
	}{
		{"before", skip, m.Ended}, {"while debits roll what they touch", m.Ended, m.JobFrom}, {"beside the roll", m.JobFrom, m.JobTo}, {"after it", m.JobTo, math.Inf(1)},
	} {
		whole := hdrhistogram.New(1, latencyMaxMicros, latencyDigits)
		for at, h := range l.spans {
			if from := math.Floor(p.from); float64(at) >= from && float64(at) < math.Floor(p.to) {
				whole.Merge(h)
			}
		}
		m.Phases = append(m.Phases, growth.Phase{Name: p.name, At: math.Floor(p.from), Debits: whole.TotalCount(), Latency: percentilesOf(whole)})
	}
}
