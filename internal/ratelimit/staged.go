package ratelimit

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/quotasvc/quotasvc/internal/ratelimit/rule"
	"github.com/quotasvc/quotasvc/internal/redisstore"
)

// partial is a part and what has become of it.
type partial struct {
	part

	asked bool
	d     Decision
	err   error
}

// charged is what a consumed part has taken: what to give back, and where in the part it is.
func (p *partial) charged() (q query, at []int) {
	q = query{op: rule.Refund, tenant: p.tenant}
	if !p.asked || p.err != nil || !p.d.Allowed {
		return q, nil
	}
	for i, v := range p.d.Verdicts {
		if v.Allowed && !v.Unknown {
			c := p.charges[i]
			c.taken = v.at
			q.charges = append(q.charges, c)
			at = append(at, i)
		}
	}
	return q, at
}

// staged decides a query whose buckets are in several slots of a cluster, where no script can decide them together.
//
// What is charged is charged in stages, the tenant's own slot last: a denial or failure stops there, and what the earlier
// ones took is given back. In between, others may be denied for a token that comes back (for a round trip); nobody is
// allowed one too many. A peek asks all slots at once.
func (l *Limiter) staged(ctx context.Context, deadline time.Time, q *query, parts []part) (Decision, error) {
	all := make([]*partial, len(parts))
	for i := range parts {
		all[i] = &partial{part: parts[i]}
	}
	stages := [][]*partial{all}
	if q.op == rule.Consume {
		stages = l.stages(all)
	}
	for _, stage := range stages {
		l.askParts(ctx, deadline, stage)
		for _, p := range stage {
			if p.err != nil || !p.d.Allowed && q.op == rule.Consume {
				return l.undo(ctx, deadline, q, all)
			}
		}
	}
	return merge(q, all), nil
}

// stages orders the parts of a charge: those whose last known level says that they will deny, so that the others are not
// charged in vain; the other foreign ones; the tenant's own.
func (l *Limiter) stages(all []*partial) [][]*partial {
	var suspects, foreign, own []*partial
	now := l.ticker.micros()
	for _, p := range all {
		guess := p.query
		guess.op = rule.Peek
		switch {
		case !p.charges[0].rule.Shared:
			own = append(own, p)
		case !l.levels.decide(&guess, now, nil).allowed:
			suspects = append(suspects, p)
		default:
			foreign = append(foreign, p)
		}
	}
	var stages [][]*partial
	for _, stage := range [][]*partial{suspects, foreign, own} {
		if len(stage) > 0 {
			stages = append(stages, stage)
		}
	}
	return stages
}

// askParts decides parts at the same time.
func (l *Limiter) askParts(ctx context.Context, deadline time.Time, parts []*partial) {
	var others sync.WaitGroup
	ask := func(p *partial) {
		p.asked = true
		p.d, p.err = l.decideTogether(ctx, deadline, &p.query)
	}
	for _, p := range parts[1:] {
		others.Go(func() { ask(p) })
	}
	ask(parts[0])
	others.Wait()
}

// undo gives back what a charge has taken that was denied or failed later, and finds out what the parts would have said that
// were not asked any more. It answers within the budget; what is under way then goes on by itself.
func (l *Limiter) undo(ctx context.Context, deadline time.Time, q *query, all []*partial) (Decision, error) {
	var failed error
	for _, p := range all {
		failed = errors.Join(failed, p.err)
	}
	known := merge(q, all) // as far as it goes: what is under way below changes copies
	var work []*partial
	for _, p := range all {
		if _, at := p.charged(); len(at) > 0 || !p.asked && failed == nil {
			c := *p
			c.d.Verdicts = append([]Verdict(nil), p.d.Verdicts...)
			work = append(work, &c)
		}
	}
	if len(work) == 0 {
		return known, failed
	}
	within, cancel := context.WithDeadline(ctx, deadline.Add(l.store.Budget()/2))
	defer cancel()
	done := l.background.run(func() {
		// The caller may leave; what was charged for it comes back all the same.
		ctx := context.WithoutCancel(ctx)
		deadline := l.store.QueueDeadline(ctx)
		var each sync.WaitGroup
		for _, p := range work {
			each.Go(func() {
				if p.asked {
					l.takeBack(ctx, deadline, p)
					return
				}
				p.op = rule.Peek
				p.d, p.err = l.decideTogether(ctx, deadline, &p.query)
				p.asked = p.err == nil
			})
		}
		each.Wait()
	})
	select {
	case <-done:
		for _, p := range work {
			p.place(&known)
		}
	case <-within.Done():
	}
	known.Allowed = false
	return known, failed
}

// takeBack refunds what a part was charged and corrects its verdicts.
func (l *Limiter) takeBack(ctx context.Context, deadline time.Time, p *partial) {
	q, at := p.charged()
	a, mode, err := l.refund(ctx, deadline, q, p.d.Mode == ModeLocal)
	if err != nil {
		l.metrics.stagedRefunds.WithLabelValues("lost").Inc()
		l.cfg.Log.WarnContext(ctx, "limits charged in another slot could not be given back; they refill by themselves", "error", err)
		return
	}
	l.metrics.stagedRefunds.WithLabelValues("done").Inc()
	back := decision(&q, a, l.replicasOf(mode), mode)
	for j, i := range at {
		p.d.Verdicts[i] = back.Verdicts[j]
	}
}

// place puts a part's verdicts where they belong in the whole decision.
func (p *partial) place(d *Decision) {
	if !p.asked || p.err != nil {
		return
	}
	for i, at := range p.positions {
		d.Verdicts[at] = p.d.Verdicts[i]
	}
	d.Degraded = d.Degraded || p.d.Degraded
	d.Mode = max(d.Mode, p.d.Mode)
}

// merge is the decision that the parts make together. What was not asked is unknown.
func merge(q *query, all []*partial) Decision {
	d := Decision{Allowed: true, Verdicts: make([]Verdict, len(q.charges))}
	for i := range q.charges {
		r := q.charges[i].rule
		d.Verdicts[i] = Verdict{Rule: r, Shadow: r.Shadow, Allowed: true, Unknown: true}
	}
	for _, p := range all {
		d.Allowed = d.Allowed && p.asked && p.err == nil && p.d.Allowed
		p.place(&d)
	}
	return d
}

// refund gives back q's charges in the process or in Redis.
func (l *Limiter) refund(ctx context.Context, deadline time.Time, q query, local bool) (answer, Mode, error) {
	if local {
		return l.levels.decide(&q, l.ticker.micros(), l.replicasOf(ModeLocal)), ModeLocal, nil
	}
	l.forget(&q)
	a, err := l.ask(ctx, deadline, &q)
	l.forget(&q) // also what was decided before the refund arrived
	if errors.Is(err, redisstore.ErrAway) {
		err = fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return a, ModeRedis, err
}

// background is work that outlives the call that began it.
type background struct {
	mu      sync.Mutex
	stopped bool
	all     sync.WaitGroup
}

// run runs f on a goroutine of its own, or at once when the limiter is stopping.
func (b *background) run(f func()) (done <-chan struct{}) {
	ended := make(chan struct{})
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.stopped {
		f()
		close(ended)
		return ended
	}
	b.all.Go(func() {
		defer close(ended)
		f()
	})
	return ended
}

// stop waits for what is under way, which is bounded by the budget.
func (b *background) stop() {
	b.mu.Lock()
	b.stopped = true
	b.mu.Unlock()
	b.all.Wait()
}
