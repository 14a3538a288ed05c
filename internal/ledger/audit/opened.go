package audit

import (
	"context"
	"slices"
	"time"
)

// Opened has what a balance's rows say about its periods and no entry says. It follows from the tenant's terms and a
// calendar, of which the auditor knows neither.
type Opened struct {
	Key

	Periods []OpenedPeriod // oldest first; the last one is open
	First   bool           // the first of Periods is the balance's first period; false after a checkpoint
	Grants  []OpenedGrant  // allowances and rollovers
	Changes *Changes       // nil: an earlier version opened the open period
}

// OpenedPeriod is a closed period, a run of idle periods, or the open period.
type OpenedPeriod struct {
	Start, End  time.Time
	Plan        string
	PlanVersion int32
	Overage     int64
	Raised      int64 // opening, granted and adjusted units: what the balance had of other grants at most

	// Only the open period has these.
	Open      bool
	Allowance int64
	Renews    bool

	// Only a run has these. Idle is the number of its periods.
	Idle, RolledOver, Rollover, Owing int64
	TermsAt                           *time.Time
	Opening, Closing, Used, Held      int64
}

// OpenedGrant is a grant that began with a period.
type OpenedGrant struct {
	ID, Source             string
	EffectiveAt, ExpiresAt time.Time
}

// TermsComparer returns the differences between what rows say and what follows from the terms of the tenants.
type TermsComparer func(context.Context, []Opened) ([]Difference, error)

// compareTerms compares what follows from terms. It adds the differences to the report, and returns the balances that
// differ.
func (p *pass) compareTerms(
	ctx context.Context, s *stored, group []*candidate, journals []*journal,
) (map[Key]bool, error) {
	if p.options.Terms == nil {
		return nil, nil
	}
	opened := make([]Opened, 0, len(group))
	for i, c := range group {
		if b := s.balances[c.Key]; b != nil && b.opened() {
			opened = append(opened, s.openedOf(c.Key, journals[i]))
		}
	}
	found, err := p.options.Terms(ctx, opened)
	differ := map[Key]bool{}
	for _, d := range found {
		differ[Key{d.Tenant, d.Meter, d.Subject}] = true
		p.report.add(Key{d.Tenant, d.Meter, d.Subject}, d.What, d.Want, d.Got)
	}
	return differ, err
}

// openedOf returns what terms decide about balance k, without what is older than the checkpoint.
func (s *stored) openedOf(k Key, j *journal) Opened {
	list, b := s.listed(k, j), s.balances[k]
	out := Opened{Key: k, First: j.resumed == nil, Periods: make([]OpenedPeriod, 0, len(list))}
	for i, p := range list {
		o := OpenedPeriod{
			Start: p.start, End: p.end, Plan: p.plan, PlanVersion: p.planVersion, Overage: p.overage,
			Raised: p.opening + p.granted + max(0, p.adjusted),
			Idle:   p.idle, RolledOver: p.rolledOver, Rollover: p.rollover, Owing: p.owing, TermsAt: p.termsAt,
			Opening: p.opening, Closing: p.closing, Used: p.used, Held: p.held,
		}
		if o.Open = i == len(list)-1; o.Open {
			o.Allowance, o.Renews = b.allowance, b.renews
		}
		out.Periods = append(out.Periods, o)
	}
	if b.knows() {
		out.Changes = s.changesOf(k, j)
	}
	for i := range s.grants[k] {
		g := &s.grants[k][i]
		if (g.source == "allowance" || g.source == "rollover") && !g.effectiveAt.Before(list[0].start) {
			out.Grants = append(out.Grants, OpenedGrant{
				ID: g.id, Source: g.source, EffectiveAt: g.effectiveAt, ExpiresAt: g.expiresAt,
			})
		}
	}
	return out
}

// listed returns the periods of an opened balance, oldest first, without those that were closed before the checkpoint.
// The open period is the last one.
func (s *stored) listed(k Key, j *journal) []period {
	b := s.balances[k]
	list := slices.Clone(s.periods[k])
	if j.resumed != nil {
		list = slices.DeleteFunc(list, func(p period) bool { return p.start.UnixMicro() < j.resumed.State.Open })
	}
	if b.opened() {
		list = append(list, period{
			start: b.start, end: b.end, opening: b.opening, granted: b.granted, refunded: b.refunded, used: b.used,
			amended: b.amended, expired: b.expired, adjusted: b.adjusted, overage: b.overage, held: b.held,
			closing: b.remaining() + b.held, lastSeq: b.seq, plan: b.plan, planVersion: b.planVersion,
		})
	}
	return list
}
