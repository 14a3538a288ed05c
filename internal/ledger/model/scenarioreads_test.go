package model

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/quotasvc/quotasvc/internal/ledger"
	"github.com/quotasvc/quotasvc/internal/ledger/notice"
	"github.com/quotasvc/quotasvc/internal/outbox/events"
)

// This file has the verbs of scenarios for reads. They advance a balance to now in memory and store nothing. The
// comment of each method begins with the syntax of its verb.

func (s *scenario) read(tenant, meter, subject string) (*Memory, *ledger.Book, error) {
	m, ok := s.tenants[tenant]
	if !ok {
		return nil, nil, fmt.Errorf("there is no tenant %q", tenant)
	}
	k := ledger.BalanceKey{Tenant: tenant, Meter: meter, Subject: subject}
	batch := m.read(k, s.now)
	if err := batch.AdvanceInMemory(nil); err != nil {
		return nil, nil, err
	}
	return m, batch.Books[k], nil
}

// entriesOf lists the entries of a balance, oldest first. It includes the entries that a write would add now.
func (s *Memory) entriesOf(b *ledger.Book) []ledger.Entry {
	var list []ledger.Entry
	for _, lines := range s.entries {
		list = append(list, slices.DeleteFunc(slices.Clone(lines), func(l ledger.Entry) bool { return l.BalanceKey != b.BalanceKey })...)
	}
	list = append(list, b.Unwritten...)
	slices.SortFunc(list, func(a, b ledger.Entry) int { return int(a.Seq - b.Seq) })
	return list
}

// balance TENANT METER [subject=SUBJECT]
func (s *scenario) balance(w words) (string, error) {
	_, b, err := s.read(w.args[0], w.args[1], w.subject())
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("ok remaining %d held %d overage %d limit %d opening %d granted %d amended %d refunded %d used %d expired %d adjusted %d "+
		"overflow %d carried %d start %s end %s plan %s version %d seq %d", b.Remaining(), b.Held, b.Overage, b.Position().Limit, b.Opening, b.Granted, b.Amended, b.Refunded,
		b.Used, b.Expired, b.Adjusted, b.Overflow.In(b.Start), b.Carried, formatInstant(b.Start), formatInstant(b.End), cmp.Or(b.Plan, "none"), b.PlanVersion, b.Seq), nil
}

// statement TENANT METER START [subject=SUBJECT] shows the statement of the period that began at START, closed or
// open. The answer has "foots yes" if opening + granted + amended + refunded - used - expired + adjusted = closing. The entries
// of the period must also add up to each of these sums. After the sums the answer has the sum of each kind of entry,
// by source, for example debit.topup 5.
func (s *scenario) statement(w words) (string, error) {
	m, b, err := s.read(w.args[0], w.args[1], w.subject())
	if err != nil {
		return "", err
	}
	start, err := parseInstant(w.args[2])
	if err != nil {
		return "", err
	}
	closed, derived, err := m.single(slices.Concat(m.periods[b.BalanceKey], b.Closed))
	if err != nil {
		return "", err
	}
	lines := m.entriesOf(b)
	if slices.ContainsFunc(derived, func(l ledger.Entry) bool { return l.PeriodStart.Equal(start) }) {
		lines = derived
	}
	periods := append(closed, ledger.PeriodRow{
		Sums: b.Sums, Start: b.Start, End: b.End, Plan: b.Plan, PlanVersion: b.PlanVersion, Closing: b.Remaining() + b.Held,
	})
	for _, p := range periods {
		if !p.Start.Equal(start) {
			continue
		}
		sum := ledger.Sums{Opening: p.Opening}
		var parts []string
		amounts := map[string]int64{}
		for _, l := range lines {
			if !l.PeriodStart.Equal(start) {
				continue
			}
			sum.Apply(l.Kind, l.Amount)
			part := string(l.Kind) + "." + string(l.Source)
			if _, ok := amounts[part]; !ok {
				parts = append(parts, part)
			}
			amounts[part] += l.Amount
		}
		foots := "no"
		if p.Opening+p.Granted+p.Amended+p.Refunded-p.Used-p.Expired+p.Adjusted == p.Closing && sum.Granted == p.Granted &&
			sum.Amended == p.Amended && sum.Refunded == p.Refunded &&
			sum.Used == p.Used && sum.Expired == p.Expired && sum.Adjusted == p.Adjusted && sum.Overage == p.Overage {
			foots = "yes"
		}
		out := fmt.Sprintf("ok foots %s opening %d granted %d amended %d refunded %d used %d expired %d adjusted %d closing %d held %d overage %d overflow %d end %s plan %s version %d",
			foots, p.Opening, p.Granted, p.Amended, p.Refunded, p.Used, p.Expired, p.Adjusted, p.Closing, p.Held, p.Overage, m.overflowOf(b.BalanceKey, p.Start), formatInstant(p.End), cmp.Or(p.Plan, "none"), p.PlanVersion)
		for _, part := range parts {
			out += fmt.Sprintf(" %s %d", part, amounts[part])
		}
		return out, nil
	}
	return "none", nil
}

// entries TENANT METER [last=N] [subject=SUBJECT] shows kind:amount:remaining of each entry, oldest first.
func (s *scenario) entries(w words) (string, error) {
	m, b, err := s.read(w.args[0], w.args[1], w.subject())
	if err != nil {
		return "", err
	}
	list := m.entriesOf(b)
	if text, ok := w.named["last"]; ok {
		n, err := strconv.Atoi(text)
		if err != nil {
			return "", err
		}
		list = list[max(0, len(list)-n):]
	}
	var shown []string
	for _, l := range list {
		shown = append(shown, fmt.Sprintf("%s:%d:%d", l.Kind, l.Amount, l.RemainingAfter))
	}
	return fmt.Sprintf("ok count %d list %s", len(list), strings.Join(shown, ",")), nil
}

// grants TENANT METER [id=GRANT] [subject=SUBJECT] shows the remainder of each open grant, in burn order. With id= it
// shows all fields of one grant.
func (s *scenario) grants(w words) (string, error) {
	m, b, err := s.read(w.args[0], w.args[1], w.subject())
	if err != nil {
		return "", err
	}
	if id, ok := w.named["id"]; ok {
		return m.factsOf(b, id), nil
	}
	open, shown := 0, []string{}
	for _, g := range b.Grants {
		switch g.Status {
		case ledger.GrantActive:
			shown = append(shown, fmt.Sprintf("%s:%d", nameOf(g.ID), g.Remaining))
			open++
		case ledger.GrantPending:
			shown = append(shown, fmt.Sprintf("%s:pending", g.ID))
			open++
		case ledger.GrantExhausted, ledger.GrantExpired, ledger.GrantVoided:
		}
	}
	if open == 0 {
		shown = []string{"none"}
	}
	return fmt.Sprintf("ok open %d list %s", open, strings.Join(shown, ",")), nil
}

// factsOf returns the fields of a grant as text. id is the name that nameOf gives to the grant.
func (s *Memory) factsOf(b *ledger.Book, id string) string {
	rows := map[string]ledger.GrantRecord{}
	for _, g := range s.grants[b.BalanceKey] {
		rows[g.ID] = g
	}
	for _, g := range b.Grants { // with the units that remain now
		rows[g.ID] = g.GrantRecord
	}
	for _, g := range rows {
		if nameOf(g.ID) == id {
			return fmt.Sprintf("ok status %s amount %d remaining %d held %d source %s priority %d from %s until %s cost %s",
				g.Status, g.Amount, g.Remaining, g.Held, g.Source, g.Priority, formatInstant(g.EffectiveAt), formatInstant(g.ExpiresAt),
				cmp.Or(g.CostBasis, "none"))
		}
	}
	return "none"
}

// note keeps the events of stored changes, and sets and clears their marks as the store does.
func (s *scenario) note(c *ledger.Changes) {
	if s.marks == nil {
		s.marks = map[events.Mark]bool{}
	}
	emitted := notice.Of(c)
	for _, e := range emitted.Events {
		if e.Once != nil {
			mark := events.Mark{Tenant: e.Tenant, Meter: e.Meter, Subject: e.Subject, Start: e.Once.Start, Name: e.Once.Mark}
			if s.marks[mark] && !e.Once.Armed {
				continue
			}
			s.marks[mark] = true
		}
		s.emitted = append(s.emitted, e)
	}
	for _, mark := range emitted.Armed {
		delete(s.marks, mark)
	}
}

// alerts TENANT METER [subject=SUBJECT] shows the thresholds and exhaustions of which there were events since the last
// such line. What is due has its events before.
func (s *scenario) alerts(w words) (string, error) {
	m, _, err := s.read(w.args[0], w.args[1], w.subject())
	if err != nil {
		return "", err
	}
	m.sweep(s.rt, s.now)
	shown := []string{}
	s.emitted = slices.DeleteFunc(s.emitted, func(e events.Event) bool {
		level, ok := e.Data.(events.Level)
		if !ok || e.Tenant != w.args[0] || e.Meter != w.args[1] || e.Subject != w.subject() {
			return false
		}
		text := "exhausted"
		if e.Type == events.ThresholdReached {
			text = strconv.Itoa(int(level.Threshold))
		}
		shown = append(shown, text)
		return true
	})
	if len(shown) == 0 {
		shown = []string{"none"}
	}
	return "ok list " + strings.Join(shown, ","), nil
}
