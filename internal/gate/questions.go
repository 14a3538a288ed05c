package gate

import (
	"context"
	"slices"
	"time"

	"github.com/quotasvc/quotasvc/internal/gate/balances"
	"github.com/quotasvc/quotasvc/internal/ledger"
)

// refusedQuestion is a debit that the ledger refused and that more than one balance decides: its plan has overflow, overage or caps of subjects, or
// it has several items. It does not change.
type refusedQuestion struct {
	check  *ledger.CheckResult // nil: it has not been asked about since
	readAt time.Time
	keys   []uint64  // hashes of the keys of the tenant's operations, in order
	spends time.Time // its balances have changed: it is not remembered before
}

// isNormal reports whether a refusal of d is not stored, and a check answers what d would be answered.
func isNormal(d *ledger.Debit) bool {
	return (d.Mode == "" || d.Mode == ledger.ModeNormal) && !d.Suspended && !slices.ContainsFunc(d.Items, func(i ledger.Item) bool { return i.StoreDenial })
}

// questionOf returns the name of d among refused questions.
func questionOf(d *ledger.Debit) string { return balances.QuestionKey(d.Tenant, d.Subject, d.Items) }

// recallQuestion returns the refused question that d repeats; nil: none.
func (m *memory) recallQuestion(d *ledger.Debit, now time.Time) *refusedQuestion {
	if m.questions.Len() == 0 || !isNormal(d) {
		return nil
	}
	if q, ok := m.questions.Get(questionOf(d)); ok && q.spends.IsZero() && now.Sub(q.readAt) < refusingAge && !m.mayBeStored(q.keys, d.Key) {
		return q
	}
	return nil
}

// refusalOfQuestion returns the refusal of d, which repeats q; nil: the ledger must decide.
func (g *Gate) refusalOfQuestion(ctx context.Context, d *ledger.Debit, facts *tenantFacts, q *refusedQuestion) error {
	if !g.stillRefused(q, facts) {
		var err error
		if q, err = g.askAgain(ctx, d, q); err != nil || g.memory.mayBeStored(q.keys, d.Key) {
			return nil //nolint:nilerr // the ledger is asked instead
		}
	}
	if q.check.Refusal == nil { // not nil in an interface
		return nil
	}
	return q.check.Refusal
}

// stillRefused reports whether q was asked about less than refusalAge ago, and no balance that decides it is known to have changed since.
func (g *Gate) stillRefused(q *refusedQuestion, facts *tenantFacts) bool {
	now := g.now()
	if q.check == nil || now.Sub(q.readAt) >= refusalAge || q.check.AsOf.Before(facts.changedAt) {
		return false
	}
	for _, read := range [...][]ledger.BalanceCopy{q.check.Copies, q.check.Others} {
		for i := range read {
			c := &read[i]
			key := [1]ledger.BalanceKey{{Tenant: c.Tenant, Meter: c.Meter, Subject: c.Subject}}
			newest := g.copies.Lookup(make([]balances.Cached, 0, 1), key[:], nil)[0].Copy
			if newest != nil && newest.Seq > c.Seq || !c.ValidUntil.IsZero() && !now.Before(c.ValidUntil) {
				return false
			}
		}
	}
	return true
}

// askAgain asks the ledger about d, and reads the keys of the tenant's operations unless those of q still hold. Callers at the same time share the
// answer. It fails if a balance has changed since, as readRefusing does.
func (g *Gate) askAgain(ctx context.Context, d *ledger.Debit, q *refusedQuestion) (*refusedQuestion, error) {
	name := questionOf(d)
	read, err, _ := g.memory.flight.Do("question "+name, func() (any, error) {
		next := &refusedQuestion{readAt: g.now()}
		var err error
		if next.check, err = g.loader.check(context.WithoutCancel(ctx), d.Tenant, d.Subject, d.Items, false); err != nil {
			return nil, err
		}
		switch {
		case next.check.Refusal == nil:
			g.memory.questions.Remove(name)
			return next, nil
		case q.check == nil:
			next.keys, err = g.keysOf(ctx, d.Tenant)
		case sameSeqs(q.check.Copies, next.check.Copies) && sameSeqs(q.check.Others, next.check.Others):
			next.keys = q.keys
		default:
			err = errSpends
		}
		if err != nil {
			g.memory.rememberQuestion(name, &refusedQuestion{spends: next.readAt.Add(pauseAfter(err))})
			return nil, err
		}
		g.memory.rememberQuestion(name, next)
		return next, nil
	})
	if err != nil {
		return nil, err
	}
	return read.(*refusedQuestion), nil
}

// sameSeqs reports whether b has the balances of a, without newer entries.
func sameSeqs(a, b []ledger.BalanceCopy) bool {
	return slices.EqualFunc(a, b, func(x, y ledger.BalanceCopy) bool {
		return x.Tenant == y.Tenant && x.Meter == y.Meter && x.Subject == y.Subject && x.Seq == y.Seq
	})
}
