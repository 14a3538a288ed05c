package ratelimit

import (
	"context"

	"github.com/quotasvc/quotasvc/internal/ratelimit/rule"
)

// ConsumeLate charges a cost that is known only after the work. It charges every rule, even if no token is left. A
// bucket goes at most Debt tokens below zero. The rest of the cost is not charged; see Verdict.Charged. A bucket that
// owes tokens passes no request. All verdicts are Allowed. ConsumeLate returns the same errors as Consume.
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
	defer l.forget(&q) // the RetryAfter of remembered denials is too short after this charge
	d, err := l.askStore(ctx, &q)
	if err != nil {
		return Decision{}, err
	}
	return l.counted(d), nil
}
