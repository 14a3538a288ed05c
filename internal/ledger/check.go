package ledger

import (
	"context"
	"errors"
	"slices"
	"time"
)

// CheckItem is the answer to one item of a check.
type CheckItem struct {
	Meter          string
	Required       int64
	MaxAllowedNow  int64
	WouldSucceedAt time.Time // zero: now, or never, as Err says
	Position
	Err *Error // nil = allowed
}

// CheckResult is what a debit would be answered at AsOf.
type CheckResult struct {
	Allowed bool
	Items   []CheckItem
	AsOf    time.Time
	Copies  []BalanceCopy // of the balances read, for a cache
}

// Question asks what a debit of Items would be answered.
type Question struct {
	Tenant  string
	Subject string
	Items   []Item // 1..ItemsMax, each meter once
}

// CheckOutcome is the answer to a Question: one of the two.
type CheckOutcome struct {
	Result *CheckResult
	Err    error
}

// Check answers what a debit of items would be answered now, from PostgreSQL, without recording anything.
func (l *Ledger) Check(ctx context.Context, tenant, subject string, items []Item) (*CheckResult, error) {
	out := l.CheckBatch(ctx, []Question{{tenant, subject, items}})
	return out[0].Result, out[0].Err
}

// CheckBatch answers questions as Check would, in their order. Those of different tenants are read together.
func (l *Ledger) CheckBatch(ctx context.Context, questions []Question) []CheckOutcome {
	out := make([]CheckOutcome, len(questions))
	probes := make([]*probe, 0, len(questions))
	for i := range questions {
		q := &questions[i]
		if e := firstOf(validID("tenant", q.Tenant), validSubject(q.Subject)); e != nil {
			out[i].Err = e
		} else if err := validItems(q.Items); err != nil {
			out[i].Err = err
		} else {
			probes = append(probes, &probe{Debit{Tenant: q.Tenant, Subject: q.Subject, Items: q.Items}, &out[i]})
		}
	}
	for len(probes) > 0 {
		// Deciding one changes the balances in memory that the next question of its tenant is about.
		asked := make(map[string]bool, len(probes))
		var together, later []*probe
		for _, p := range probes {
			if asked[p.Tenant] {
				later = append(later, p)
				continue
			}
			asked[p.Tenant] = true
			together = append(together, p)
		}
		l.checkTogether(ctx, together)
		probes = later
	}
	return out
}

// probe is a question that is being answered: a debit that is not made.
type probe struct {
	Debit

	out *CheckOutcome
}

// checkTogether answers questions of different tenants.
func (l *Ledger) checkTogether(ctx context.Context, probes []*probe) {
	var extra []key
	for range extraKeyRounds {
		calls := make([]*call, len(probes))
		for i, p := range probes {
			calls[i] = p.call()
		}
		m, err := l.viewFor(ctx, calls, extra)
		if half := len(probes) / 2; half > 0 && CodeOf(err) == CodeInternal { // what one balance is; the others can be had
			l.checkTogether(ctx, probes[:half])
			l.checkTogether(ctx, probes[half:])
			return
		}
		if err != nil {
			for _, p := range probes {
				p.out.Result, p.out.Err = nil, err
			}
			return
		}
		probes = slices.DeleteFunc(probes, func(p *probe) (answered bool) {
			p.out.Result, p.out.Err = m.checkItems(&p.Debit)
			more, unanswered := errors.AsType[*errNeedKeys](p.out.Err)
			if unanswered {
				extra = append(extra, more.keys...)
			}
			return !unanswered
		})
		if len(probes) == 0 {
			return
		}
	}
	for _, p := range probes {
		p.out.Result, p.out.Err = nil, uncomputable(nil)
	}
}

func (m *machine) checkItems(d *Debit) (*CheckResult, error) {
	result := &CheckResult{Allowed: true, Items: make([]CheckItem, len(d.Items)), AsOf: m.now}
	for i := range d.Items {
		// As if everything were asked for: the answer says how much there is, whoever it comes from.
		w, failed, err := m.wellOf(d.Tenant, d.Items[i].Meter, d.Subject, MaxAmount, itemField(i, "meter"))
		if failed != nil {
			return nil, failed
		}
		if err != nil {
			return nil, internalUnlessKeys(err)
		}
		amount := d.Items[i].Amount
		item := CheckItem{Meter: w.own.Meter, Required: amount, MaxAllowedNow: w.available(), Position: w.own.position()}
		if w.own.unknown() || item.MaxAllowedNow < amount {
			if item.Err, err = w.deny(i, amount, later(m.now, w.own.updatedAt)); err != nil {
				return nil, internalUnlessKeys(err)
			}
			if item.Err.Denial != nil {
				item.WouldSucceedAt = item.Err.Denial.WouldSucceedAt
			}
		}
		result.Items[i] = item
		result.Allowed = result.Allowed && item.Err == nil
		result.Copies = append(result.Copies, w.own.copy(later(m.now, w.own.updatedAt)))
	}
	// Items may share an overflow meter: only deciding them together tells whether all of them pass.
	c := d.call()
	if err := m.decide(c); err != nil {
		return nil, internalUnlessKeys(err)
	}
	if e, denied := errors.AsType[*Error](c.err); denied && e.Denial != nil && result.Allowed {
		result.Allowed, result.Items[e.Denial.Item].Err = false, e
	}
	return result, nil
}

func internalUnlessKeys(err error) error {
	if _, ok := errors.AsType[*errNeedKeys](err); ok {
		return err
	}
	return uncomputable(err)
}

// uncomputable says that a balance cannot be computed for cause; nil: it asked for other balances without an end.
func uncomputable(cause error) *Error {
	return &Error{Code: CodeInternal, Detail: "the balance cannot be computed", cause: cause}
}
