package ledger

import (
	"fmt"
	"slices"
	"time"
)

func (h *HoldChange) needs(f *found) []need {
	var out []need
	for _, k := range f.holds[holdKey{h.Tenant, h.HoldID}] {
		out = append(out, need{k, needAll})
	}
	return out
}

func (h *HoldChange) decide(m *machine, c *call) error {
	row := m.holds[holdKey{h.Tenant, h.HoldID}]
	if row == nil {
		c.fail(errorf(CodeHoldNotFound, "hold_id", "tenant %q has no hold %q", h.Tenant, h.HoldID))
		return nil
	}
	// A hold may lie on other meters' grants altogether; its items' own balances are part of every answer.
	own := make([]key, len(row.items))
	for i := range row.items {
		own[i] = key{row.tenant, row.items[i].Meter, ""}
	}
	if err := m.needKeys(own...); err != nil {
		return err
	}
	lines := m.heldLines(row.holdKey)
	if row.status == HoldActive && len(lines) == 0 {
		row.status, row.dirty = HoldExpired, true
	}
	if row.status != HoldActive {
		c.fail(errorf(CodeHoldNotActive, "hold_id", "hold %q is %s", h.HoldID, row.status))
		return nil
	}
	first := len(m.journal.lines)
	before := *row
	before.items = append([]HoldItem(nil), row.items...)
	failed, err := h.apply(m, row, lines)
	if failed != nil || err != nil {
		m.rollback(first)
		*row = before
	}
	if err != nil {
		return err
	}
	if failed != nil {
		c.fail(failed)
		if failed.Denial != nil && slices.ContainsFunc(h.Items, func(it Item) bool { return it.StoreDenial && it.Meter == failed.Denial.Limiting.Meter }) {
			m.storeDenial(c, opMeta{subject: row.subject}, failed)
		}
		return nil
	}
	row.dirty = true
	m.answerHold(c, row, first, h.taken(m, row, first), opMeta{subject: row.subject})
	return nil
}

// taken shows what a capture drew; for the other actions, what is still reserved.
func (h *HoldChange) taken(m *machine, row *holdRow, first int) [][]Draw {
	if h.Action != ActionCapture {
		return row.draws(m)
	}
	out := make([][]Draw, len(row.items))
	for _, l := range m.journal.lines[first:] {
		if l.Subject == "" && (l.kind == lineCapture || l.kind == lineDebit || l.kind == lineOverage) && l.amount > 0 {
			out[l.item] = append(out[l.item], Draw{Grant: l.grantID, Source: l.source, Meter: l.Meter, Amount: l.amount})
		}
	}
	return out
}

func (h *HoldChange) apply(m *machine, row *holdRow, lines []heldLine) (*Error, error) {
	for _, l := range lines {
		m.remember(l.book)
	}
	switch h.Action {
	case ActionExtend:
		row.expiresAt = later(row.expiresAt, m.now.Add(h.TTL))
		for _, l := range lines {
			l.expiresAt, l.dirty = row.expiresAt, true
			l.book.dirty = true
			l.book.settle()
		}
		m.journal.add(lines[0].book, m.now, line{kind: lineExtend, item: lines[0].item})
		return nil, nil
	case ActionRelease:
		m.releaseLines(lines, h.Return)
		row.status = HoldReleased
		if row.captured() > 0 {
			row.status = HoldCaptured
		}
		return nil, nil
	case ActionCapture:
		return h.capture(m, row, lines)
	}
	return errorf(CodeInvalidArgument, "action", "must be capture, release or extend"), nil
}

func (row *holdRow) captured() int64 {
	sum := int64(0)
	for i := range row.items {
		sum += row.items[i].Captured
	}
	return sum
}

func (m *machine) releaseLines(lines []heldLine, policy ReturnPolicy) {
	for _, l := range lines {
		if n := l.open(); n > 0 {
			l.book.giveBack(l.holdLine, n, policy, "", m.now, m.now, &m.journal)
		}
	}
	for _, l := range lines {
		l.book.settle()
	}
}

// capture turns held units into used ones, item by item. What is asked beyond the hold is decided like a debit.
func (h *HoldChange) capture(m *machine, row *holdRow, lines []heldLine) (*Error, error) {
	final := h.Final || len(h.Items) == 0
	for i := range row.items {
		amount, asked := h.amountFor(row, i, lines)
		if !asked {
			continue
		}
		part := min(amount, heldUnits(lines, i))
		m.captureItem(row, i, part, lines)
		row.items[i].Captured += amount
		if extra := amount - part; extra > 0 {
			if failed, err := h.captureBeyond(m, row, i, extra); failed != nil || err != nil {
				return failed, err
			}
		}
	}
	for i := range h.Items {
		if row.itemOf(h.Items[i].Meter) < 0 {
			return errorf(CodeInvalidArgument, itemField(i, "meter"), "hold %q has no item of meter %q", row.id, h.Items[i].Meter), nil
		}
	}
	if final {
		m.releaseLines(lines, h.Return)
	}
	left := int64(0)
	for _, l := range lines {
		left += l.open()
		l.book.settle()
	}
	if left == 0 {
		row.status = HoldCaptured
	}
	return nil, nil
}

func (row *holdRow) itemOf(meter string) int {
	for i := range row.items {
		if row.items[i].Meter == meter {
			return i
		}
	}
	return -1
}

// amountFor says how much of item i to capture.
func (h *HoldChange) amountFor(row *holdRow, i int, lines []heldLine) (int64, bool) {
	if len(h.Items) == 0 {
		held := heldUnits(lines, i)
		return held, held > 0
	}
	for _, item := range h.Items {
		if item.Meter == row.items[i].Meter {
			return item.Amount, true
		}
	}
	return 0, false
}

// captureItem captures units of item i: of the tenant's lines in the order they were reserved, and of the subject's.
func (m *machine) captureItem(row *holdRow, i int, units int64, lines []heldLine) {
	meter := row.items[i].Meter
	tenant, subject, cost := units, units, int64(-1)
	for _, l := range lines {
		if int(l.item) != i {
			continue
		}
		switch {
		case l.book.Subject != "":
			subject -= m.captureLine(l, min(subject, l.open()), nil)
		case l.book.Meter == meter:
			tenant -= m.captureLine(l, min(tenant, l.open()), nil)
		default:
			paid := &overflowDetail{For: meter, Price: l.price}
			if cost < 0 {
				cost = tenant * l.price
				paid.Units = tenant // the first line of several carries the units
			}
			cost -= m.captureLine(l, min(cost, l.open()), paid)
		}
	}
}

// captureLine captures n of a line. paid says what for, where the line lies on an overflow meter.
func (m *machine) captureLine(l heldLine, n int64, paid *overflowDetail) int64 {
	if n == 0 {
		return 0
	}
	b := l.book
	l.captured, l.dirty = l.captured+n, true
	b.unhold(l.grantID, n)
	b.used += n
	b.dirty = true
	m.journal.add(b, m.now, line{
		kind: lineCapture, grantID: l.grantID, source: l.source, amount: n, item: l.item,
		detail: mustJSON(holdDetail{Hold: l.holdID, Overflow: paid}),
	})
	return n
}

// captureBeyond charges what a capture asks beyond what is held, like a debit.
func (h *HoldChange) captureBeyond(m *machine, row *holdRow, i int, extra int64) (*Error, error) {
	if h.Suspended {
		return errorf(CodeTenantSuspended, "tenant", "tenant %q is suspended: no more than what is held can be captured", row.tenant), nil
	}
	w, failed, err := m.wellOf(row.tenant, row.items[i].Meter, row.subject, extra, itemField(i, "meter"))
	if failed != nil || err != nil {
		return failed, err
	}
	w.remember(m)
	s := w.split(extra)
	if s.units() < extra {
		return w.deny(i, extra, later(m.now, w.own.updatedAt))
	}
	if !w.loaded(s, 0) {
		return nil, errNotLoaded
	}
	m.charge(w, i, extra, s, 0)
	return nil, nil
}

// unhold takes n off what is held on a grant.
func (b *book) unhold(grantID string, n int64) {
	b.held -= n
	for _, g := range b.grants {
		if g.ID == grantID {
			g.Held, g.dirty = g.Held-n, true
		}
	}
}

// giveBack returns n held units to the grant they were taken from, or where policy says if that one has ended. opID names the
// operation when it is the ledger's own; then due is when it was due.
func (b *book) giveBack(h *holdLine, n int64, policy ReturnPolicy, opID string, due, now time.Time, j *journal) {
	h.returned, h.dirty = h.returned+n, true
	b.unhold(h.grantID, n)
	b.dirty = true
	to := b.restore(h.grantID, h.source, n, policy, derivedID(prefixRegrant, fmt.Sprint("hold/", h.holdID, "/", h.line, "/", h.returned)), due)
	detail := holdDetail{Hold: h.holdID}
	if to.policy != "" {
		detail.From, detail.Policy = h.grantID, to.policy
	}
	l := line{kind: lineRelease, operationID: opID, line: 1, grantID: to.grantID, source: to.source, amount: n, item: h.item, detail: mustJSON(detail)}
	if opID != "" {
		l.effectiveAt = &due
	}
	j.add(b, now, l)
	if to.policy == ReturnForfeit {
		b.expired += n
		l.kind, l.line = lineExpire, 2
		j.add(b, now, l)
	}
}
