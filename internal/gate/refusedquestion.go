package gate

import (
	"context"
	"slices"
	"time"

	"github.com/quotasvc/quotasvc/internal/gate/balances"
	"github.com/quotasvc/quotasvc/internal/ledger"
)

// refusedQuestion is the entry of a debit that the ledger refused and that more than one balance decides. Several
// balances decide if the plan has overflow, overage or caps of subjects, or if the debit has several items. An entry
// does not change.
type refusedQuestion struct {
	check  *ledger.CheckResult // nil: the debit was not checked since the refusal
	readAt time.Time
	keys   []uint64  // hashes of the keys of the tenant's operations, in order
	spends time.Time // not zero if its balances change: the question is not remembered before this instant
}

// questionOf returns the key of d in refusals.questions.
func questionOf(d *ledger.Debit) string { return balances.QuestionKey(d.Tenant, d.Subject, d.Items) }

// keepQuestion replaces the remembered entry with the key name.
func (m *refusals) keepQuestion(name string, q *refusedQuestion) {
	m.questions.Remove(name)
	m.makeRoom(len(q.keys))
	m.questions.Put(name, q)
}

// findQuestion returns the entry of an earlier debit that asked the same question as d. It returns nil if there is no
// such entry, or if the entry must not refuse d.
func (m *refusals) findQuestion(d *ledger.Debit, now time.Time) *refusedQuestion {
	if m.questions.Len() == 0 || !isNormal(d) {
		return nil
	}
	q, ok := m.questions.Get(questionOf(d))
	if !ok || !q.spends.IsZero() || now.Sub(q.readAt) >= refusingAge || m.mayBeStored(q.keys, d.Key) {
		return nil
	}
	return q
}

// refuseByQuestion returns the refusal of d, which repeats the question q. It returns nil if the ledger must decide.
func (m *refusals) refuseByQuestion(
	ctx context.Context, d *ledger.Debit, facts *tenantFacts, q *refusedQuestion,
) error {
	if !m.questionHolds(q, facts) {
		var err error
		if q, err = m.readQuestion(ctx, d, q); err != nil || m.mayBeStored(q.keys, d.Key) {
			return nil //nolint:nilerr // the ledger decides instead
		}
	}
	if q.check.Refusal == nil { // a nil pointer would be an error that is not nil
		return nil
	}
	return q.check.Refusal
}

// questionHolds reports whether q is still valid. It must have been read less than refusalAge ago, and no later
// change of its balances may be known.
func (m *refusals) questionHolds(q *refusedQuestion, facts *tenantFacts) bool {
	now := m.now()
	if q.check == nil || now.Sub(q.readAt) >= refusalAge || q.check.AsOf.Before(facts.changedAt) {
		return false
	}
	for _, read := range [...][]ledger.BalanceCopy{q.check.Copies, q.check.Others} {
		for i := range read {
			c := &read[i]
			key := [1]ledger.BalanceKey{{Tenant: c.Tenant, Meter: c.Meter, Subject: c.Subject}}
			newest := m.copies.Lookup(make([]balances.Cached, 0, 1), key[:], nil)[0].Copy
			if newest != nil && newest.Seq > c.Seq || !c.ValidUntil.IsZero() && !now.Before(c.ValidUntil) {
				return false
			}
		}
	}
	return true
}

// readQuestion checks d in the ledger. It also reads the keys of the tenant's operations, unless the keys of q are
// still current. Concurrent callers share the answer. Like readBalance, it fails if a balance has changed since the
// last read.
func (m *refusals) readQuestion(ctx context.Context, d *ledger.Debit, q *refusedQuestion) (*refusedQuestion, error) {
	name := questionOf(d)
	read, err, _ := m.flight.Do("question "+name, func() (any, error) {
		next := &refusedQuestion{readAt: m.now()}
		var err error
		next.check, err = m.loader.check(context.WithoutCancel(ctx), d.Tenant, d.Subject, d.Items, false)
		if err != nil {
			return nil, err
		}
		switch {
		case next.check.Refusal == nil:
			m.questions.Remove(name)
			return next, nil
		case q.check == nil:
			next.keys, err = m.readKeys(ctx, d.Tenant)
		case sameSeqs(q.check.Copies, next.check.Copies) && sameSeqs(q.check.Others, next.check.Others):
			next.keys = q.keys
		default:
			err = errSpends
		}
		if err != nil {
			m.keepQuestion(name, &refusedQuestion{spends: next.readAt.Add(pauseAfter(err))})
			return nil, err
		}
		m.keepQuestion(name, next)
		return next, nil
	})
	if err != nil {
		return nil, err
	}
	return read.(*refusedQuestion), nil
}

// sameSeqs reports whether a and b are copies of the same balances with the same newest entries.
func sameSeqs(a, b []ledger.BalanceCopy) bool {
	return slices.EqualFunc(a, b, func(x, y ledger.BalanceCopy) bool {
		return x.Tenant == y.Tenant && x.Meter == y.Meter && x.Subject == y.Subject && x.Seq == y.Seq
	})
}
