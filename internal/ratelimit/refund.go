package ratelimit

import (
	"context"
	"errors"
	"sync"

	"github.com/quotasvc/quotasvc/internal/ratelimit/rule"
)

// Refund gives back what was charged: pass it Decision.Charged. What is no longer missing is not given back: a bucket is
// never more than full. The verdicts are of req's charges, in order, as the buckets are then; one whose refund may not have
// arrived is Unknown. ErrUnavailable says that there is such a one; the bucket refills by itself in any case.
func (l *Limiter) Refund(ctx context.Context, req Request) ([]Verdict, error) {
	q, err := req.check(rule.Refund)
	if err != nil || len(q.charges) == 0 {
		return nil, err
	}
	if l.stopped.Load() {
		return nil, ErrStopped
	}
	remote, local := part{query: query{op: rule.Refund, tenant: q.tenant}}, part{query: query{op: rule.Refund, tenant: q.tenant}}
	after := make([]Verdict, len(q.charges))
	for i, c := range q.charges {
		after[i] = Verdict{Rule: c.rule, Shadow: c.rule.Shadow, Allowed: true, Unknown: true}
		to := &remote
		if l.store == nil || req.local&(1<<i) != 0 {
			to = &local
		}
		to.charges, to.positions = append(to.charges, c), append(to.positions, i)
	}
	if len(local.charges) > 0 {
		replicas := l.replicasOf(ModeLocal)
		d := decision(&local.query, l.levels.decide(&local.query, l.ticker.micros(), replicas), replicas, ModeLocal)
		for j, at := range local.positions {
			after[at] = d.Verdicts[j]
		}
	}
	if len(remote.charges) == 0 {
		return after, nil
	}
	return after, l.refundThere(ctx, &remote, after)
}

// refundThere gives back what Redis was charged, and puts what it says then into after.
func (l *Limiter) refundThere(ctx context.Context, remote *part, after []Verdict) error {
	deadline := l.store.QueueDeadline(ctx)
	errs := make([]error, MaxCharges)
	var all sync.WaitGroup
	for i, p := range l.parts(&remote.query) {
		all.Go(func() {
			a, mode, err := l.refund(ctx, deadline, p.query, false)
			if errs[i] = err; err != nil {
				return
			}
			d := decision(&p.query, a, l.replicasOf(mode), mode)
			for j := range p.charges {
				at := j
				if p.positions != nil { // one of several slots
					at = p.positions[j]
				}
				after[remote.positions[at]] = d.Verdicts[j]
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}
