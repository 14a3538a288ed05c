package model

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/kit/period"
	"github.com/quotasvc/quotasvc/internal/ledger"
)

// trial finds out what a request lacks at an instant. The request goes on after an item that lacks units.
type trial struct {
	only  int // index of the only item that is asked for; every: all items
	lacks []lack
	asked map[ledger.BalanceKey]bool // the balances that the request needs
}

const every = -1

// action carries out a request.
type action = func(m *Model, op *operation) string

// lack is a balance that has too few units for an item.
type lack struct {
	item, units    int64 // units: how many could be charged now
	meter, subject string
	renews         bool
	end            time.Time // end of its period
	unstored       bool
}

func (l *lack) key() ledger.BalanceKey {
	return ledger.BalanceKey{Tenant: Tenant, Meter: l.meter, Subject: l.subject}
}

func (m *Model) skips(item int) bool {
	return m.trial != nil && m.trial.only != every && m.trial.only != item
}

// deny refuses an item of a request. short says whether the tenant lacks units, with all that the item may draw from.
func (m *Model) deny(item int, meter, subject string, amount, units int64, short bool) {
	b := m.touch(ledger.BalanceKey{Tenant: Tenant, Meter: meter})
	if b.plan == "" && b.entries == 0 {
		m.refuse(errcode.MeterNotInPlan)
	}
	if m.trial == nil {
		panic(refused{denied: true})
	}
	add := func(b *balance, subject string) {
		m.trial.lacks = append(m.trial.lacks, lack{
			item: int64(item), units: units, meter: meter, subject: subject, end: b.end,
			renews: b.plan != "" && !b.terms.once && b.terms.amount > 0,
		})
	}
	if subject != "" && b.plan != "" && b.terms.perSubject != nil {
		if s := m.touch(ledger.BalanceKey{Tenant: Tenant, Meter: meter, Subject: subject}); s.remaining() < amount {
			add(s, subject)
		}
	}
	if short {
		add(b, "")
	}
}

// try returns what a request lacks now, or a refusal for another reason.
func (m *Model) try(only int, act action) (t *trial, refusal string) {
	t = &trial{only: only, asked: map[ledger.BalanceKey]bool{}}
	bare := *m
	bare.ops = nil
	c := bare.clone()
	c.trial = t
	defer func() {
		if r := recover(); r != nil {
			no, ok := r.(refused)
			if !ok {
				panic(r)
			}
			refusal = no.answer
		}
	}()
	act(c, &operation{})
	return t, ""
}

// The classes of waits, from the shortest to the longest.
const (
	soon  = iota // up to the horizon, at a known instant
	later        // not before the horizon
	never
)

// waits advances time until the request lacks none of the units that counts selects.
func (m *Model) waits(
	only int, act action, end time.Time, counts func(*lack) bool,
) (class int, at time.Time) {
	enough := func(m *Model) (map[ledger.BalanceKey]bool, bool) {
		t, refusal := m.try(only, act)
		return t.asked, refusal == "" && !slices.ContainsFunc(t.lacks, func(l lack) bool { return counts(&l) })
	}
	c := m.clone()
	c.foresees = m.Now
	keys, done := enough(c)
	longest := time.Hour
	for !done {
		next := period.Forever
		for k := range keys {
			b := c.touch(k)
			next = period.Earlier(next, c.due(k, b))
			longest = max(longest, b.allowances[b.current].length)
		}
		switch {
		case !next.Before(period.Forever):
			return never, time.Time{}
		case next.After(end):
			const periods = 150 // enough for a rollover to reach its maximum, and for old overage to be paid
			c.Now = period.Later(c.Now, c.lastKnown())
			enough(c)
			for k := range keys {
				longest = max(longest, c.touch(k).allowances[c.touch(k).current].length)
			}
			c.Now = c.Now.Add(periods * longest)
			if _, done = enough(c); done {
				return later, time.Time{}
			}
			return never, time.Time{}
		}
		c.Now = next
		var more map[ledger.BalanceKey]bool
		more, done = enough(c)
		for k := range more {
			keys[k] = true
		}
	}
	return soon, c.Now
}

// horizon returns the latest end of a period that brings units. If one of the balances gets no units by the end of a
// period, every known event counts as well.
func (m *Model) horizon(t *trial) time.Time {
	end, facts := time.Time{}, false
	for _, l := range t.lacks {
		if l.renews {
			end = period.Later(end, l.end)
		}
		facts = facts || !l.renews
	}
	if !facts {
		return end
	}
	for k := range t.asked {
		if b := m.touch(k); b.end.Before(period.Forever) {
			end = period.Later(end, b.end)
		}
		for _, r := range m.reserves {
			if r.balance == k && r.left > 0 {
				end = period.Later(end, r.until)
			}
		}
		end = period.Later(end, m.lastKnown())
		for _, g := range m.touch(k).grants {
			if g.state == "pending" {
				end = period.Later(end, g.from)
			}
		}
	}
	return end
}

// verdict returns the answer to a request that lacks units.
func (m *Model) verdict(act action) refused {
	t, refusal := m.try(every, act)
	if refusal != "" {
		return refused{answer: refusal}
	}
	end := m.horizon(t)
	class, _ := m.waits(every, act, end, func(*lack) bool { return true })
	type waiting struct {
		lack

		class int
		at    time.Time
	}
	var all []waiting
	for _, l := range t.lacks {
		w := waiting{lack: l}
		if len(t.lacks) > 1 {
			w.class, w.at = m.waits(int(l.item), act, end, func(o *lack) bool { return o.key() == l.key() })
		}
		all = append(all, w)
	}
	last := slices.MaxFunc(all, func(a, b waiting) int {
		longer := cmp.Or(cmp.Compare(a.class, b.class), a.at.Compare(b.at))
		return cmp.Or(longer, cmp.Compare(a.subject, b.subject), -cmp.Compare(a.meter, b.meter))
	})
	code := errcode.QuotaExceeded
	if class == never {
		code = errcode.CreditsExhausted
	}
	return refused{answer: fmt.Sprintf("%s available %d of %s", code, last.units, last.meter), unstored: last.unstored}
}
