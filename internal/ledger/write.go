package ledger

import (
	"cmp"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// queueWrites queues everything the machine has changed. It reports whether there is anything to write.
func (m *machine) queueWrites(q queries, out *pgx.Batch) bool {
	var changed []*book
	var inserted, updated []*grant
	var closed []closedPeriod
	for _, b := range m.books {
		if b.broken != nil || !b.dirty {
			continue
		}
		changed = append(changed, b)
		closed = append(closed, b.closed...)
		for _, g := range b.grants {
			switch {
			case g.isNew:
				inserted = append(inserted, g)
			case g.dirty:
				updated = append(updated, g)
			}
		}
	}
	if len(changed) == 0 {
		return false
	}
	m.queueHolds(q, out, changed)
	m.queueRefunds(q, out)
	queueJournal(q, out, m.journal.lines)
	queueChanged(q, out, changed)
	if len(inserted) > 0 {
		queueNewGrants(q, out, inserted)
	}
	if len(updated) > 0 {
		queueGrants(q, out, updated)
	}
	if len(closed) > 0 {
		queuePeriods(q, out, closed)
	}
	return true
}

// column collects one field of every element, for unnest.
func column[E, F any](in []E, field func(*E) F) []F {
	out := make([]F, len(in))
	for i := range in {
		out[i] = field(&in[i])
	}
	return out
}

// queueJournal writes the lines, plain debits apart.
func queueJournal(q queries, out *pgx.Batch, lines []line) {
	plain := make([]*line, 0, len(lines))
	var others []line
	for i := range lines {
		if lines[i].plainDebit() {
			plain = append(plain, &lines[i])
		} else {
			others = append(others, lines[i])
		}
	}
	if len(plain) > 0 {
		queuePlainDebits(q, out, plain)
	}
	if len(others) > 0 {
		queueLines(q, out, others)
	}
}

// plainDebit says whether InsertPlainDebits can write the line.
func (l *line) plainDebit() bool {
	return l.kind == lineDebit && l.line == 1 && l.item == 0 && l.Subject == "" && l.requested != nil && *l.requested == l.amount &&
		l.fingerprint != nil && l.effectiveAt == nil && l.opSubject == nil && l.detail == nil && l.metadata == nil
}

func queuePlainDebits(q queries, out *pgx.Batch, l []*line) {
	out.Queue(q["InsertPlainDebits"],
		column(l, func(l **line) string { return (*l).Tenant }),
		column(l, func(l **line) string { return (*l).operationID }),
		column(l, func(l **line) int64 { return (*l).seq }),
		column(l, func(l **line) string { return (*l).Meter }),
		column(l, func(l **line) time.Time { return (*l).periodStart }),
		column(l, func(l **line) string { return (*l).grantID }),
		column(l, func(l **line) string { return string((*l).source) }),
		column(l, func(l **line) int64 { return (*l).amount }),
		column(l, func(l **line) int64 { return (*l).remainingAfter }),
		column(l, func(l **line) []byte { return (*l).fingerprint }),
		column(l, func(l **line) time.Time { return (*l).createdAt }),
	)
}

// queueChanged writes the balances. One whose grants were not read was only drawn from.
func queueChanged(q queries, out *pgx.Batch, changed []*book) {
	drawn := make([]*book, 0, len(changed))
	var others []*book
	for _, b := range changed {
		if b.loaded {
			others = append(others, b)
		} else {
			drawn = append(drawn, b)
		}
	}
	if len(drawn) > 0 {
		out.Queue(q["UpdateDrawnBalances"],
			column(drawn, func(b **book) string { return (*b).Tenant }),
			column(drawn, func(b **book) string { return (*b).Meter }),
			column(drawn, func(b **book) string { return (*b).Subject }),
			column(drawn, func(b **book) int64 { return (*b).seq }),
			column(drawn, func(b **book) int64 { return (*b).used }),
			column(drawn, func(b **book) int64 { return (*b).overage }),
			column(drawn, func(b **book) int64 { return (*b).headRemaining }),
			column(drawn, func(b **book) time.Time { return (*b).updatedAt }),
			int64(len(drawn)),
		)
	}
	if len(others) > 0 {
		queueBalances(q, out, others)
	}
}

func queueLines(q queries, out *pgx.Batch, l []line) {
	out.Queue(q["InsertEntries"],
		column(l, func(l *line) string { return l.Tenant }),
		column(l, func(l *line) string { return l.operationID }),
		column(l, func(l *line) int32 { return l.line }),
		column(l, func(l *line) int64 { return l.seq }),
		column(l, func(l *line) string { return l.kind }),
		column(l, func(l *line) string { return l.Meter }),
		column(l, func(l *line) string { return l.Subject }),
		column(l, func(l *line) time.Time { return l.periodStart }),
		column(l, func(l *line) string { return l.grantID }),
		column(l, func(l *line) string { return string(l.source) }),
		column(l, func(l *line) int64 { return l.amount }),
		column(l, func(l *line) int64 { return l.remainingAfter }),
		column(l, func(l *line) int32 { return l.item }),
		column(l, func(l *line) *int64 { return l.requested }),
		column(l, func(l *line) []byte { return l.fingerprint }),
		column(l, func(l *line) time.Time { return l.createdAt }),
		column(l, func(l *line) *time.Time { return l.effectiveAt }),
		column(l, func(l *line) *string { return l.opSubject }),
		column(l, func(l *line) []byte { return l.detail }),
		column(l, func(l *line) []byte { return l.metadata }),
	)
}

func queueBalances(q queries, out *pgx.Batch, b []*book) {
	out.Queue(q["UpdateBalances"],
		column(b, func(b **book) string { return (*b).Tenant }),
		column(b, func(b **book) string { return (*b).Meter }),
		column(b, func(b **book) string { return (*b).Subject }),
		column(b, func(b **book) int64 { return (*b).seq }),
		column(b, func(b **book) string { return (*b).plan }),
		column(b, func(b **book) int32 { return (*b).planVersion }),
		column(b, func(b **book) int64 { return (*b).allowance }),
		column(b, func(b **book) bool { return (*b).renews }),
		column(b, func(b **book) time.Time { return (*b).start }),
		column(b, func(b **book) time.Time { return (*b).end }),
		column(b, func(b **book) int64 { return (*b).opening }),
		column(b, func(b **book) int64 { return (*b).granted }),
		column(b, func(b **book) int64 { return (*b).refunded }),
		column(b, func(b **book) int64 { return (*b).used }),
		column(b, func(b **book) int64 { return (*b).expired }),
		column(b, func(b **book) int64 { return (*b).adjusted }),
		column(b, func(b **book) int64 { return (*b).held }),
		column(b, func(b **book) int64 { return (*b).overage }),
		column(b, func(b **book) int64 { return (*b).owed }),
		column(b, func(b **book) int64 { return (*b).settled }),
		column(b, func(b **book) int64 { return (*b).forgivenSeq }),
		column(b, func(b **book) string { return (*b).headID }),
		column(b, func(b **book) string { return string((*b).headSource) }),
		column(b, func(b **book) int64 { return (*b).headRemaining }),
		column(b, func(b **book) time.Time { return (*b).nextEvent }),
		column(b, func(b **book) time.Time { return (*b).updatedAt }),
		int64(len(b)),
	)
}

func queueNewGrants(q queries, out *pgx.Batch, g []*grant) {
	out.Queue(q["InsertGrants"],
		column(g, func(g **grant) string { return (*g).Tenant }),
		column(g, func(g **grant) string { return (*g).Meter }),
		column(g, func(g **grant) string { return (*g).Subject }),
		column(g, func(g **grant) string { return (*g).ID }),
		column(g, func(g **grant) string { return string((*g).Source) }),
		column(g, func(g **grant) int64 { return (*g).Amount }),
		column(g, func(g **grant) int32 { return (*g).Priority }),
		column(g, func(g **grant) time.Time { return (*g).EffectiveAt }),
		column(g, func(g **grant) time.Time { return (*g).ExpiresAt }),
		column(g, func(g **grant) string { return (*g).CostBasis }),
		column(g, func(g **grant) string { return (*g).Reason }),
		column(g, func(g **grant) string { return (*g).OperationID }),
		column(g, func(g **grant) time.Time { return (*g).CreatedAt }),
		column(g, func(g **grant) int64 { return (*g).Remaining }),
		column(g, func(g **grant) int64 { return (*g).Held }),
		column(g, func(g **grant) string { return string((*g).Status) }),
	)
}

func queueGrants(q queries, out *pgx.Batch, g []*grant) {
	out.Queue(q["UpdateGrants"],
		column(g, func(g **grant) string { return (*g).Tenant }),
		column(g, func(g **grant) string { return (*g).Meter }),
		column(g, func(g **grant) string { return (*g).Subject }),
		column(g, func(g **grant) string { return (*g).ID }),
		column(g, func(g **grant) int64 { return (*g).Remaining }),
		column(g, func(g **grant) int64 { return (*g).Held }),
		column(g, func(g **grant) string { return string((*g).Status) }),
		int64(len(g)),
	)
}

func queuePeriods(q queries, out *pgx.Batch, p []closedPeriod) {
	out.Queue(q["InsertPeriods"],
		column(p, func(p *closedPeriod) string { return p.Tenant }),
		column(p, func(p *closedPeriod) string { return p.Meter }),
		column(p, func(p *closedPeriod) string { return p.Subject }),
		column(p, func(p *closedPeriod) time.Time { return p.start }),
		column(p, func(p *closedPeriod) time.Time { return p.end }),
		column(p, func(p *closedPeriod) string { return p.plan }),
		column(p, func(p *closedPeriod) int32 { return p.planVersion }),
		column(p, func(p *closedPeriod) int64 { return p.opening }),
		column(p, func(p *closedPeriod) int64 { return p.granted }),
		column(p, func(p *closedPeriod) int64 { return p.refunded }),
		column(p, func(p *closedPeriod) int64 { return p.used }),
		column(p, func(p *closedPeriod) int64 { return p.expired }),
		column(p, func(p *closedPeriod) int64 { return p.adjusted }),
		column(p, func(p *closedPeriod) int64 { return p.overage }),
		column(p, func(p *closedPeriod) int64 { return p.held }),
		column(p, func(p *closedPeriod) int64 { return p.closing }),
		column(p, func(p *closedPeriod) int64 { return p.lastSeq }),
		column(p, func(p *closedPeriod) time.Time { return p.closedAt }),
	)
}

func (m *machine) queueHolds(q queries, out *pgx.Batch, changed []*book) {
	var rows []*holdRow
	for _, h := range m.holds {
		if h.isNew || h.dirty {
			rows = append(rows, h)
		}
	}
	slices.SortFunc(rows, func(a, b *holdRow) int { return cmp.Or(cmp.Compare(a.tenant, b.tenant), cmp.Compare(a.id, b.id)) })
	if len(rows) > 0 {
		out.Queue(q["WriteHolds"],
			column(rows, func(h **holdRow) string { return (*h).tenant }),
			column(rows, func(h **holdRow) string { return (*h).id }),
			column(rows, func(h **holdRow) string { return (*h).subject }),
			column(rows, func(h **holdRow) string { return string((*h).status) }),
			column(rows, func(h **holdRow) []byte { return mustJSON((*h).items) }),
			column(rows, func(h **holdRow) time.Time { return (*h).createdAt }),
			column(rows, func(h **holdRow) time.Time { return (*h).expiresAt }),
		)
	}
	var inserted, updated []heldLine
	for _, b := range changed {
		for _, h := range b.holds {
			switch {
			case h.isNew:
				inserted = append(inserted, heldLine{b, h})
			case h.dirty:
				updated = append(updated, heldLine{b, h})
			}
		}
	}
	if len(inserted) > 0 {
		queueNewHoldLines(q, out, inserted)
	}
	if len(updated) > 0 {
		out.Queue(q["UpdateHoldLines"],
			column(updated, func(h *heldLine) string { return h.book.Tenant }),
			column(updated, func(h *heldLine) string { return h.holdID }),
			column(updated, func(h *heldLine) int32 { return h.line }),
			column(updated, func(h *heldLine) int64 { return h.captured }),
			column(updated, func(h *heldLine) int64 { return h.returned }),
			column(updated, func(h *heldLine) time.Time { return h.expiresAt }),
			int64(len(updated)),
		)
	}
}

func queueNewHoldLines(q queries, out *pgx.Batch, h []heldLine) {
	out.Queue(q["InsertHoldLines"],
		column(h, func(h *heldLine) string { return h.book.Tenant }),
		column(h, func(h *heldLine) string { return h.holdID }),
		column(h, func(h *heldLine) int32 { return h.line }),
		column(h, func(h *heldLine) int32 { return h.item }),
		column(h, func(h *heldLine) string { return h.book.Meter }),
		column(h, func(h *heldLine) string { return h.book.Subject }),
		column(h, func(h *heldLine) string { return h.grantID }),
		column(h, func(h *heldLine) string { return string(h.source) }),
		column(h, func(h *heldLine) int64 { return h.price }),
		column(h, func(h *heldLine) int64 { return h.amount }),
		column(h, func(h *heldLine) int64 { return h.captured }),
		column(h, func(h *heldLine) int64 { return h.returned }),
		column(h, func(h *heldLine) time.Time { return h.expiresAt }),
	)
}

func (m *machine) queueRefunds(q queries, out *pgx.Batch) {
	var keys []refundKey
	for k, s := range m.refunds {
		if s.dirty {
			keys = append(keys, k)
		}
	}
	if len(keys) == 0 {
		return
	}
	out.Queue(q["WriteRefunds"],
		column(keys, func(k *refundKey) string { return k.tenant }),
		column(keys, func(k *refundKey) string { return k.id }),
		column(keys, func(k *refundKey) int32 { return k.line }),
		column(keys, func(k *refundKey) int64 { return m.refunds[*k].amount }),
	)
}

// queueCommit queues COMMIT and refuses PostgreSQL's silent ROLLBACK.
func queueCommit(out *pgx.Batch) {
	out.Queue("COMMIT").Exec(func(tag pgconn.CommandTag) error {
		if tag.String() != "COMMIT" {
			return errRolledBack
		}
		return nil
	})
}
