package ratelimit

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/quotasvc/quotasvc/internal/ratelimit/rule"
	"github.com/quotasvc/quotasvc/internal/store/redisstore"
)

// partResult is a part of a query. If the part was asked, partResult has its decision or its error.
type partResult struct {
	query

	asked bool
	d     Decision
	err   error
}

// refundQuery returns the query that refunds the charges of a consumed part, and the positions of those charges in
// the part.
func (p *partResult) refundQuery() (q query, at []int) {
	q = query{op: rule.Refund, tenant: p.tenant, once: p.once}
	if !p.asked || p.err != nil || !p.d.Allowed {
		return q, nil
	}
	for i, v := range p.d.Verdicts {
		if v.Charged > 0 {
			c := p.charges[i]
			c.cost, c.taken = v.Charged, v.at
			q.charges = append(q.charges, c)
			at = append(at, i)
		}
	}
	return q, at
}

// staged decides a query whose buckets are in several slots of a cluster, where no script can decide them together.
//
// A consume charges the parts in stages, the tenant's own slot last. After a denial or failure it stops and refunds
// all charges of this query. For one round trip, other requests may be denied because of such a charge. No request is
// wrongly admitted. A peek queries all slots at the same time.
func (l *Limiter) staged(ctx context.Context, deadline time.Time, q *query, parts []query) (Decision, error) {
	all := make([]*partResult, len(parts))
	for i := range parts {
		all[i] = &partResult{query: parts[i]}
	}
	stages := [][]*partResult{all}
	if q.op == rule.Consume {
		stages = l.stages(all)
	}
	for _, stage := range stages {
		l.decideParts(ctx, deadline, stage)
		for _, p := range stage {
			if p.err != nil || !p.d.Allowed && q.op == rule.Consume {
				return l.refundAndPeek(ctx, deadline, q, all)
			}
		}
	}
	return merge(q, all), nil
}

// stages orders the parts of a consume. First come the parts of shared rules that would deny by their last known
// level, so that the other parts are not charged in vain. Then come the other parts of shared rules, and last the
// tenant's own part.
func (l *Limiter) stages(all []*partResult) [][]*partResult {
	var suspects, foreign, own []*partResult
	now := l.micros()
	for _, p := range all {
		peek := p.query
		peek.op = rule.Peek
		switch {
		case !p.charges[0].rule.Shared:
			own = append(own, p)
		case !l.local.decide(&peek, now, nil).allowed:
			suspects = append(suspects, p)
		default:
			foreign = append(foreign, p)
		}
	}
	var stages [][]*partResult
	for _, stage := range [][]*partResult{suspects, foreign, own} {
		if len(stage) > 0 {
			stages = append(stages, stage)
		}
	}
	return stages
}

// decideParts decides parts at the same time.
func (l *Limiter) decideParts(ctx context.Context, deadline time.Time, parts []*partResult) {
	var others sync.WaitGroup
	decide := func(p *partResult) {
		p.asked = true
		p.d, p.err = l.decideTogether(ctx, deadline, &p.query)
	}
	for _, p := range parts[1:] {
		others.Go(func() { decide(p) })
	}
	decide(parts[0])
	others.Wait()
}

// refundAndPeek is called after a part was denied or failed. It refunds the parts that were charged. After a denial
// it also peeks at the parts that were not asked, so that every rule has a verdict. It returns within the budget, and
// unfinished work continues in the background.
func (l *Limiter) refundAndPeek(ctx context.Context, deadline time.Time, q *query, all []*partResult) (Decision, error) {
	var failed error
	for _, p := range all {
		failed = errors.Join(failed, p.err)
	}
	known := merge(q, all) // the work below changes copies of the parts
	var work []*partResult
	for _, p := range all {
		if _, at := p.refundQuery(); len(at) > 0 || !p.asked && failed == nil {
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
		// The caller may return before the end of this work. The charges must be refunded in any case.
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

// takeBack refunds the charges of a part and corrects its verdicts.
func (l *Limiter) takeBack(ctx context.Context, deadline time.Time, p *partResult) {
	q, at := p.refundQuery()
	a, mode, err := l.refund(ctx, deadline, &q, p.d.Mode == ModeLocal)
	if err != nil {
		l.metrics.stagedRefunds.WithLabelValues("lost").Inc()
		l.cfg.Log.WarnContext(ctx, "charges of another slot could not be refunded; the buckets refill with time", "error", err)
		return
	}
	l.metrics.stagedRefunds.WithLabelValues("done").Inc()
	back := decision(&q, a, l.replicasOf(mode), mode)
	for j, i := range at {
		p.d.Verdicts[i] = back.Verdicts[j]
	}
}

// place copies the verdicts of a part to their positions in the whole decision.
func (p *partResult) place(d *Decision) {
	if !p.asked || p.err != nil {
		return
	}
	for i, at := range p.positions {
		d.Verdicts[at] = p.d.Verdicts[i]
	}
	d.Degraded = d.Degraded || p.d.Degraded
	d.Mode = max(d.Mode, p.d.Mode)
}

// merge returns the decision of the whole query from the decisions of its parts. The verdicts of a part that was not
// asked are Unknown.
func merge(q *query, all []*partResult) Decision {
	d := Decision{Allowed: true, Verdicts: make([]Verdict, len(q.charges))}
	for i := range q.charges {
		d.Verdicts[i] = unknown(q.charges[i].rule)
	}
	for _, p := range all {
		d.Allowed = d.Allowed && p.asked && p.err == nil && p.d.Allowed
		p.place(&d)
	}
	return d
}

// refund refunds q's charges: in this process if local is true, else in Redis.
func (l *Limiter) refund(ctx context.Context, deadline time.Time, q *query, local bool) (answer, Mode, error) {
	if local {
		return l.local.decide(q, l.micros(), l.replicasOf(ModeLocal)), ModeLocal, nil
	}
	l.forget(q)
	a, err := l.ask(ctx, deadline, q)
	l.forget(q) // also denials that were remembered before the refund arrived
	if errors.Is(err, redisstore.ErrAway) {
		err = fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return a, ModeRedis, err
}

// background runs work that may continue after the call that started it.
type background struct {
	mu      sync.Mutex
	stopped bool
	all     sync.WaitGroup
}

// run runs f in a separate goroutine, or after stop in the caller's goroutine. done is closed when f has returned.
func (b *background) run(f func()) (done <-chan struct{}) {
	ended := make(chan struct{})
	work := func() {
		defer close(ended)
		f()
	}
	b.mu.Lock()
	stopped := b.stopped
	if !stopped {
		b.all.Go(work)
	}
	b.mu.Unlock() // f may call run
	if stopped {
		work()
	}
	return ended
}

// stop waits until the running work ends, which takes at most the budget.
func (b *background) stop() {
	b.mu.Lock()
	b.stopped = true
	b.mu.Unlock()
	b.all.Wait()
}
