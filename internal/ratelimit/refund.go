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
	return l.correct(ctx, rule.Refund, req)
}

// Settle changes the costs of charged tokens. req is a result of Decision.Charged, and costs has what its charges
// should have taken, 0 or more. What was taken too much is given back, as by Refund. What is missing is charged as if
// it had been charged together with req: a bucket may fall below zero, by at most its debt, and what would have come
// back by itself is not charged. A cost of 0 is a refund, so the id of the request forgets the rule. The verdicts and
// errors are as for Refund. If a rule is closed while Redis is away, what is missing is not charged, and the error
// matches ErrUnavailable.
func (l *Limiter) Settle(ctx context.Context, req Request, costs []int64) ([]Verdict, error) {
	after := make([]Verdict, len(req.Charges))
	var failed error
	for _, op := range []rule.Op{rule.Late, rule.Refund, rule.Peek} {
		part, at := Request{Tenant: req.Tenant}, []int(nil)
		for i, c := range req.Charges {
			missing := costs[i] - c.Cost
			if missing > 0 != (op == rule.Late) || missing < 0 != (op == rule.Refund) {
				continue
			}
			if missing != 0 {
				c.Cost = max(missing, -missing)
			}
			if op == rule.Refund && costs[i] == 0 {
				part.Once = req.Once // the id forgets what it has charged
			}
			part.add(c, req.isLocal(i))
			at = append(at, i)
			after[i] = unknown(c.Rule)
		}
		verdicts, err := l.correct(ctx, op, part)
		failed = errors.Join(failed, err)
		for j, v := range verdicts {
			after[at[j]] = v
		}
	}
	return after, failed
}

func unknown(r *rule.Rule) Verdict {
	return Verdict{Rule: r, Shadow: r.Shadow, Allowed: true, Unknown: true}
}

// correct refunds charged tokens, charges more of them, or peeks at their buckets. Like the charge it does so in Redis
// or in this process.
func (l *Limiter) correct(ctx context.Context, op rule.Op, req Request) ([]Verdict, error) {
	q, err := req.check(op)
	if err != nil || len(q.charges) == 0 {
		return nil, err
	}
	if l.stopped.Load() {
		return nil, ErrStopped
	}
	remote := query{op: op, tenant: q.tenant, once: q.once, fresh: true}
	local := remote
	after := make([]Verdict, len(q.charges))
	for i, c := range q.charges {
		after[i] = unknown(c.rule)
		to := &remote
		switch {
		case l.store == nil, req.isLocal(i) && (l.local.owes(&c) || l.store.IsAway(c.key)):
			to = &local
		case req.isLocal(i): // Redis has got this charge since
			now := l.micros()
			c.taken = c.ofWhole(now, l.store.Now(c.key)-now, l.cfg.Replicas())
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
	switch {
	case len(remote.charges) == 0:
		return after, nil
	case op == rule.Refund:
		return after, l.refundRemote(ctx, &remote, after)
	}
	defer l.forget(&remote)
	at := remote.positions
	remote.positions = nil
	d, err := l.askStore(ctx, &remote)
	for j, v := range d.Verdicts {
		after[at[j]] = v
	}
	return after, err
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
