package ratelimit

import (
	"context"

	"github.com/quotasvc/quotasvc/internal/ratelimit/rule"
)

// ConsumeLate charges a cost that is known only after the work: every rule is charged, whatever is left. What would take a bucket further
// below zero than its rule's Debt is not charged; see Verdict.Charged. Nothing passes a bucket that owes. All verdicts are Allowed. Errors
// are those of Consume.
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
	defer l.forget(&q) // what is remembered of earlier denials ends too early now
	d, err := l.askStore(ctx, &q)
	if err != nil {
		return Decision{}, err
	}
	return l.counted(d), nil
}
