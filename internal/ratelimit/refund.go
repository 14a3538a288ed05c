package ratelimit

import (
	"context"
	"errors"
	"sync"

	"github.com/quotasvc/quotasvc/internal/ratelimit/rule"
)

// Refund gives back charged tokens. req is a result of Decision.Charged. A bucket is never more than full, so at most
// the missing tokens are given back. The verdicts show the buckets after the refund, in the order of req's charges.
// If the refund of a charge may not have reached Redis, its verdict is Unknown, and the error matches ErrUnavailable.
// The tokens of such a bucket come back with time.
func (l *Limiter) Refund(ctx context.Context, req Request) ([]Verdict, error) {
	q, err := req.check(rule.Refund)
	if err != nil || len(q.charges) == 0 {
		return nil, err
	}
	if l.stopped.Load() {
		return nil, ErrStopped
	}
	remote := query{op: rule.Refund, tenant: q.tenant, once: q.once}
	local := remote
	after := make([]Verdict, len(q.charges))
	for i, c := range q.charges {
		after[i] = Verdict{Rule: c.rule, Shadow: c.rule.Shadow, Allowed: true, Unknown: true}
		to := &remote
		switch {
		case l.store == nil, req.local&(1<<i) != 0 && (l.local.owes(&c) || l.store.IsAway(c.key)):
			to = &local
		case req.local&(1<<i) != 0: // Redis has got this charge since
			c.taken = c.ofWhole(l.micros(), l.cfg.Replicas())
		}
		to.charges, to.positions = append(to.charges, c), append(to.positions, i)
	}
	if len(local.charges) > 0 {
		replicas := l.replicasOf(ModeLocal)
		d := decision(&local, l.local.decide(&local, l.micros(), replicas), replicas, ModeLocal)
		for j, at := range local.positions {
			after[at] = d.Verdicts[j]
		}
	}
	if len(remote.charges) == 0 {
		return after, nil
	}
	return after, l.refundRemote(ctx, &remote, after)
}

// refundRemote refunds charges in Redis, and stores the verdicts in the list `after`.
func (l *Limiter) refundRemote(ctx context.Context, remote *query, after []Verdict) error {
	deadline := l.store.QueueDeadline(ctx)
	parts := []query{*remote}
	if l.store.IsCluster() {
		parts = remote.parts()
	}
	errs := make([]error, len(parts))
	var all sync.WaitGroup
	for i := range parts {
		all.Go(func() {
			p := &parts[i]
			a, mode, err := l.refund(ctx, deadline, p, false)
			if errs[i] = err; err != nil {
				return
			}
			d := decision(p, a, l.replicasOf(mode), mode)
			for j, at := range p.positions {
				after[at] = d.Verdicts[j]
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}
