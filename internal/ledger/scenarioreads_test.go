package ledger

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// The verbs that read. A balance is brought to now in memory, as reads do; nothing is kept.

func (s *scenario) read(tenant, meter, subject string) (*memory, *book, []line, error) {
	m, ok := s.tenants[tenant]
	if !ok {
		return nil, nil, nil, fmt.Errorf("there is no tenant %q", tenant)
	}
	k := key{tenant, meter, subject}
	machine := m.load(&attempt{keys: []key{k}, force: true, demand: map[key]int64{}}, s.now)
	for {
		more, err := machine.advanceAll()
		if err != nil || !more {
			return m, machine.books[k], machine.journal.lines, err
		}
	}
}

// entriesOf lists the entries of a balance, oldest first: those stored, and those that advance would write.
func (s *memory) entriesOf(k key, unwritten []line) []line {
	var list []line
	for _, lines := range s.entries {
		list = append(list, slices.DeleteFunc(slices.Clone(lines), func(l line) bool { return l.key != k })...)
	}
	list = append(list, unwritten...)
	slices.SortFunc(list, func(a, b line) int { return int(a.seq - b.seq) })
	return list
}

// balance TENANT METER [subject=SUBJECT]
func (s *scenario) balance(w words) (string, error) {
	_, b, _, err := s.read(w.args[0], w.args[1], w.subject())
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("ok remaining %d held %d overage %d limit %d opening %d granted %d refunded %d used %d expired %d adjusted %d "+
		"start %s end %s plan %s version %d seq %d", b.remaining(), b.held, b.overage, b.position().Limit, b.opening, b.granted, b.refunded,
		b.used, b.expired, b.adjusted, formatInstant(b.start), formatInstant(b.end), cmp.Or(b.plan, "none"), b.planVersion, b.seq), nil
}

// statement TENANT METER START [subject=SUBJECT] of the period that began at START, closed or open. foots says that opening +
// granted + refunded - used - expired + adjusted = closing, and that the journal's entries of the period add up to each of them.
// After the figures it has what each kind of entry came to, by source: debit.topup 5.
func (s *scenario) statement(w words) (string, error) {
	m, b, unwritten, err := s.read(w.args[0], w.args[1], w.subject())
	if err != nil {
		return "", err
	}
	start, err := parseInstant(w.args[2])
	if err != nil {
		return "", err
	}
	periods := append(slices.Concat(m.periods[b.key], b.closed), closedPeriod{
		start: b.start, end: b.end, plan: b.plan, planVersion: b.planVersion, opening: b.opening, granted: b.granted, refunded: b.refunded,
		used: b.used, expired: b.expired, adjusted: b.adjusted, overage: b.overage, held: b.held, closing: b.remaining() + b.held,
	})
	for _, p := range periods {
		if !p.start.Equal(start) {
			continue
		}
		sum := balance{opening: p.opening}
		var parts []string
		amounts := map[string]int64{}
		for _, l := range m.entriesOf(b.key, unwritten) {
			if !l.periodStart.Equal(start) {
				continue
			}
			sum.apply(l.kind, l.amount)
			part := l.kind + "." + string(l.source)
			if _, ok := amounts[part]; !ok {
				parts = append(parts, part)
			}
			amounts[part] += l.amount
		}
		foots := "no"
		if p.opening+p.granted+p.refunded-p.used-p.expired+p.adjusted == p.closing && sum.granted == p.granted && sum.refunded == p.refunded &&
			sum.used == p.used && sum.expired == p.expired && sum.adjusted == p.adjusted && sum.overage == p.overage {
			foots = "yes"
		}
		out := fmt.Sprintf("ok foots %s opening %d granted %d refunded %d used %d expired %d adjusted %d closing %d held %d overage %d end %s plan %s version %d",
			foots, p.opening, p.granted, p.refunded, p.used, p.expired, p.adjusted, p.closing, p.held, p.overage, formatInstant(p.end), cmp.Or(p.plan, "none"), p.planVersion)
		for _, part := range parts {
			out += fmt.Sprintf(" %s %d", part, amounts[part])
		}
		return out, nil
	}
	return "none", nil
}

// entries TENANT METER [last=N] [subject=SUBJECT]: kind:amount:remaining of each, oldest first.
func (s *scenario) entries(w words) (string, error) {
	m, b, unwritten, err := s.read(w.args[0], w.args[1], w.subject())
	if err != nil {
		return "", err
	}
	list := m.entriesOf(b.key, unwritten)
	if text, ok := w.named["last"]; ok {
		n, err := strconv.Atoi(text)
		if err != nil {
			return "", err
		}
		list = list[max(0, len(list)-n):]
	}
	var shown []string
	for _, l := range list {
		shown = append(shown, fmt.Sprintf("%s:%d:%d", l.kind, l.amount, l.remainingAfter))
	}
	return fmt.Sprintf("ok count %d list %s", len(list), strings.Join(shown, ",")), nil
}

// grants TENANT METER [id=GRANT] [subject=SUBJECT]: what is left of each open grant, in the order they burn; with id=, the facts of one.
func (s *scenario) grants(w words) (string, error) {
	m, b, _, err := s.read(w.args[0], w.args[1], w.subject())
	if err != nil {
		return "", err
	}
	if id, ok := w.named["id"]; ok {
		return m.factsOf(b, id), nil
	}
	open, shown := 0, []string{}
	for _, g := range b.grants {
		switch g.Status {
		case GrantActive:
			shown = append(shown, fmt.Sprintf("%s:%d", nameOf(g.ID), g.Remaining))
			open++
		case GrantPending:
			shown = append(shown, fmt.Sprintf("%s:pending", g.ID))
			open++
		case GrantExhausted, GrantExpired, GrantVoided:
		}
	}
	if open == 0 {
		shown = []string{"none"}
	}
	return fmt.Sprintf("ok open %d list %s", open, strings.Join(shown, ",")), nil
}

// factsOf shows the grant whose id or short name is id.
func (s *memory) factsOf(b *book, id string) string {
	rows := map[string]GrantRecord{}
	for _, g := range s.grants[b.key] {
		rows[g.ID] = g
	}
	for _, g := range b.grants { // as they stand now
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
