package ratelimit

import (
	"context"

	"github.com/quotasvc/quotasvc/internal/ratelimit/rule"
)

// ConsumeLate charges a cost that is known only after the work. It charges every rule, even if no token is left. The
// part that would take a bucket further below zero than its rule's Debt is not charged; see Verdict.Charged. A bucket
// that owes passes nothing. All verdicts are Allowed. It returns the errors of Consume.
func (l *Limiter) ConsumeLate(ctx context.Context, req Request) (Decision, error) {
	q, err := req.check(rule.Late)
	switch {
	case err != nil:
		return Decision{}, err
	case l.stopped.Load():
		return Decision{}, ErrStopped
	case l.store == nil:
		return l.decideLocally(&q), nil
	case len(q.charges) == 0:
		return Decision{Allowed: true}, nil
	}
	defer l.forget(&q) // the wait of earlier denials is too short now
	d, err := l.askStore(ctx, &q)
	if err != nil {
		return Decision{}, err
	}
	return l.counted(d), nil
}
