package pg

import (
	"encoding/binary"
	"encoding/json"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/quotasvc/quotasvc/internal/kit/null"
	"github.com/quotasvc/quotasvc/internal/kit/period"
	"github.com/quotasvc/quotasvc/internal/ledger"
)

// queueChanges queues the statements that write c. newBalances have no row yet.
func queueChanges(q map[string]string, out *pgx.Batch, c *ledger.Changes, newBalances keySet) {
	if len(c.Holds)+len(c.NewHoldLines)+len(c.HoldLines) > 0 {
		queueHolds(q, out, c)
	}
	if len(c.Refunds) > 0 {
		queueRefunds(q, out, c.Refunds)
	}
	changed := c.Books
	if len(newBalances) > 0 {
		// These rows come before the entries: a transaction that creates the same rows at the same time is noticed
		// here.
		changed = queueNewBalances(q, out, changed, newBalances)
	}
	queueEntries(q, out, c.Entries)
	queueChangedBalances(q, out, changed)
	if len(c.NewGrants) > 0 {
		queueNewGrants(q, out, c.NewGrants)
	}
	if len(c.Grants) > 0 {
		queueGrants(q, out, c.Grants)
		queueExtended(q, out, c.Grants)
	}
	if len(c.Periods) > 0 {
		queuePeriods(q, out, c.Periods)
	}
	if rows := c.Overflows; len(rows) > 0 {
		out.Queue(q["AddOverflows"],
			column(rows, func(o *ledger.OverflowRow) string { return o.Tenant }),
			column(rows, func(o *ledger.OverflowRow) string { return o.Meter }),
			column(rows, func(o *ledger.OverflowRow) time.Time { return o.Period }),
			column(rows, func(o *ledger.OverflowRow) string { return o.PaidBy }),
			column(rows, func(o *ledger.OverflowRow) time.Time { return o.Quarter }),
			column(rows, func(o *ledger.OverflowRow) int64 { return o.Units }),
			column(rows, func(o *ledger.OverflowRow) int64 { return o.Operations }),
		)
	}
}

// column collects one field of every element, for unnest.
func column[E, F any](in []E, field func(*E) F) []F {
	out := make([]F, len(in))
	for i := range in {
		out[i] = field(&in[i])
	}
	return out
}

// queueEntries writes the entries. Plain debits have a cheaper statement of their own. If plain debits are not the
// majority, one statement writes all entries, because a second statement is not worth its cost.
func queueEntries(q map[string]string, out *pgx.Batch, entries []ledger.Entry) {
	plain := make([]*ledger.Entry, 0, len(entries))
	var others []*ledger.Entry
	for i := range entries {
		if isPlainDebit(&entries[i]) {
			plain = append(plain, &entries[i])
		} else {
			others = append(others, &entries[i])
		}
	}
	if len(plain) <= len(others) {
		plain, others = nil, append(others, plain...)
	}
	if len(plain) > 0 {
		queuePlainDebits(q, out, plain)
	}
	if len(others) > 0 {
		queueOtherEntries(q, out, others)
	}
}

// isPlainDebit reports whether InsertPlainDebits can write the entry.
func isPlainDebit(e *ledger.Entry) bool {
	return e.Kind == ledger.EntryDebit && e.Line == 1 && e.Item == 0 && e.Subject == "" && e.Amount > 0 && e.Requested == e.Amount &&
		e.Fingerprint != nil && e.EffectiveAt.IsZero() && e.OpSubject == "" && e.Detail == nil && e.Metadata == nil
}

func queuePlainDebits(q map[string]string, out *pgx.Batch, e []*ledger.Entry) {
	out.Queue(q["InsertPlainDebits"],
		column(e, func(e **ledger.Entry) string { return (*e).Tenant }),
		column(e, func(e **ledger.Entry) string { return (*e).OperationID }),
		column(e, func(e **ledger.Entry) int64 { return (*e).Seq }),
		column(e, func(e **ledger.Entry) string { return (*e).Meter }),
		column(e, func(e **ledger.Entry) time.Time { return (*e).PeriodStart }),
		column(e, func(e **ledger.Entry) string { return (*e).Grant }),
		column(e, func(e **ledger.Entry) string { return string((*e).Source) }),
		column(e, func(e **ledger.Entry) int64 { return (*e).Amount }),
		column(e, func(e **ledger.Entry) int64 { return (*e).RemainingAfter }),
		column(e, func(e **ledger.Entry) []byte { return (*e).Fingerprint }),
		column(e, func(e **ledger.Entry) time.Time { return (*e).CreatedAt }),
		column(e, func(e **ledger.Entry) string { return (*e).Actor }),
	)
}

func queueOtherEntries(q map[string]string, out *pgx.Batch, e []*ledger.Entry) {
	out.Queue(q["InsertEntries"],
		column(e, func(e **ledger.Entry) string { return (*e).Tenant }),
		column(e, func(e **ledger.Entry) string { return (*e).OperationID }),
		column(e, func(e **ledger.Entry) int32 { return (*e).Line }),
		column(e, func(e **ledger.Entry) int64 { return (*e).Seq }),
		column(e, func(e **ledger.Entry) string { return string((*e).Kind) }),
		column(e, func(e **ledger.Entry) string { return (*e).Meter }),
		column(e, func(e **ledger.Entry) string { return (*e).Subject }),
		column(e, func(e **ledger.Entry) time.Time { return (*e).PeriodStart }),
		column(e, func(e **ledger.Entry) string { return (*e).Grant }),
		column(e, func(e **ledger.Entry) string { return string((*e).Source) }),
		column(e, func(e **ledger.Entry) int64 { return (*e).Amount }),
		column(e, func(e **ledger.Entry) int64 { return (*e).RemainingAfter }),
		column(e, func(e **ledger.Entry) int32 { return (*e).Item }),
		column(e, func(e **ledger.Entry) *int64 { return null.IfZero((*e).Requested) }),
		column(e, func(e **ledger.Entry) []byte { return (*e).Fingerprint }),
		column(e, func(e **ledger.Entry) time.Time { return (*e).CreatedAt }),
		column(e, func(e **ledger.Entry) *time.Time { return period.OrNil((*e).EffectiveAt) }),
		column(e, func(e **ledger.Entry) *string { return null.IfZero((*e).OpSubject) }),
		column(e, func(e **ledger.Entry) []byte { return (*e).Detail }),
		column(e, func(e **ledger.Entry) []byte { return (*e).Metadata }),
		column(e, func(e **ledger.Entry) string { return (*e).Actor }),
	)
}

// queueNewBalances creates the rows of the new balances among changed, and returns the other balances. It creates
// them in key order, so that batches that create the same rows cannot deadlock.
func queueNewBalances(q map[string]string, out *pgx.Batch, changed []*ledger.Book, newBalances keySet) (others []*ledger.Book) {
	var created []*ledger.Book
	for _, b := range changed {
		if newBalances.has(b.BalanceKey) {
			created = append(created, b)
		} else {
			others = append(others, b)
		}
	}
	if len(created) > 0 {
		slices.SortFunc(created, func(a, b *ledger.Book) int { return ledger.CompareKeys(a.BalanceKey, b.BalanceKey) })
		out.Queue(q["InsertBalances"], balanceColumns(created)...)
	}
	return others
}

// queueChangedBalances writes the balances. Balances that only debits have changed have a statement of their own.
func queueChangedBalances(q map[string]string, out *pgx.Batch, changed []*ledger.Book) {
	drawn := make([]*ledger.Book, 0, len(changed))
	var others []*ledger.Book
	for _, b := range changed {
		if b.HeadOnly() {
			drawn = append(drawn, b)
		} else {
			others = append(others, b)
		}
	}
	if len(drawn) > 0 {
		out.Queue(q["UpdateDrawnBalances"],
			column(drawn, func(b **ledger.Book) string { return (*b).Tenant }),
			column(drawn, func(b **ledger.Book) string { return (*b).Meter }),
			column(drawn, func(b **ledger.Book) string { return (*b).Subject }),
			column(drawn, func(b **ledger.Book) int64 { return (*b).Seq }),
			column(drawn, func(b **ledger.Book) int64 { return (*b).Used }),
			column(drawn, func(b **ledger.Book) int64 { return (*b).Overage }),
			column(drawn, func(b **ledger.Book) int64 { return (*b).HeadRemaining }),
			column(drawn, func(b **ledger.Book) time.Time { return (*b).UpdatedAt }),
			chains(drawn),
			int64(len(drawn)),
		)
	}
	if len(others) > 0 {
		out.Queue(q["UpdateBalances"], append(balanceColumns(others), int64(len(others)))...)
	}
}

// chainLength is the length of a stored chain: the first and the newest seq that it covers, big endian, and the hash.
const chainLength = 8 + 8 + 32

// chains encodes the hash chains of books, NULL for chains that cover no entry. The encoded chains share one array.
func chains(books []*ledger.Book) [][]byte {
	buf, out := make([]byte, 0, chainLength*len(books)), make([][]byte, len(books))
	for i, b := range books {
		c := &b.Chain
		if c.From == 0 {
			continue
		}
		from := len(buf)
		buf = binary.BigEndian.AppendUint64(buf, uint64(c.From))
		buf = append(binary.BigEndian.AppendUint64(buf, uint64(c.Last)), c.Head[:]...)
		out[i] = buf[from:len(buf):len(buf)]
	}
	return out
}

// balanceColumns returns all columns of balances, for unnest.
func balanceColumns(b []*ledger.Book) []any {
	return []any{
		column(b, func(b **ledger.Book) string { return (*b).Tenant }),
		column(b, func(b **ledger.Book) string { return (*b).Meter }),
		column(b, func(b **ledger.Book) string { return (*b).Subject }),
		column(b, func(b **ledger.Book) int64 { return (*b).Seq }),
		column(b, func(b **ledger.Book) string { return (*b).Plan }),
		column(b, func(b **ledger.Book) int32 { return (*b).PlanVersion }),
		column(b, func(b **ledger.Book) int64 { return (*b).Allowance }),
		column(b, func(b **ledger.Book) bool { return (*b).Renews }),
		column(b, func(b **ledger.Book) time.Time { return (*b).Start }),
		column(b, func(b **ledger.Book) time.Time { return (*b).End }),
		column(b, func(b **ledger.Book) int64 { return (*b).Opening }),
		column(b, func(b **ledger.Book) int64 { return (*b).Granted }),
		column(b, func(b **ledger.Book) int64 { return (*b).Refunded }),
		column(b, func(b **ledger.Book) int64 { return (*b).Used }),
		column(b, func(b **ledger.Book) int64 { return (*b).Expired }),
		column(b, func(b **ledger.Book) int64 { return (*b).Adjusted }),
		column(b, func(b **ledger.Book) int64 { return (*b).Held }),
		column(b, func(b **ledger.Book) int64 { return (*b).Overage }),
		column(b, func(b **ledger.Book) int64 { return (*b).Owed }),
		column(b, func(b **ledger.Book) int64 { return (*b).Paid }),
		column(b, func(b **ledger.Book) int64 { return (*b).ForgivenSeq }),
		column(b, func(b **ledger.Book) string { return (*b).HeadID }),
		column(b, func(b **ledger.Book) string { return string((*b).HeadSource) }),
		column(b, func(b **ledger.Book) int64 { return (*b).HeadRemaining }),
		column(b, func(b **ledger.Book) time.Time { return (*b).NextEvent }),
		column(b, func(b **ledger.Book) time.Time { return (*b).UpdatedAt }),
		column(b, func(b **ledger.Book) time.Time { return (*b).RollAt }),
		chains(b),
		column(b, func(b **ledger.Book) int64 { return (*b).Carried }),
		column(b, func(b **ledger.Book) int64 { return (*b).Amended }),
		column(b, func(b **ledger.Book) int64 { return (*b).Entitled }),
		column(b, func(b **ledger.Book) int64 { return (*b).Short }),
		column(b, func(b **ledger.Book) int64 { return (*b).OverageBefore }),
		column(b, func(b **ledger.Book) time.Time { return toDB((*b).CarriedFrom) }),
		column(b, func(b **ledger.Book) time.Time { return toDB((*b).AllowanceAt) }),
		column(b, func(b **ledger.Book) time.Time { return toDB((*b).TermsAt) }),
	}
}

func queueNewGrants(q map[string]string, out *pgx.Batch, g []*ledger.OpenGrant) {
	out.Queue(q["InsertGrants"],
		column(g, func(g **ledger.OpenGrant) string { return (*g).Tenant }),
		column(g, func(g **ledger.OpenGrant) string { return (*g).Meter }),
		column(g, func(g **ledger.OpenGrant) string { return (*g).Subject }),
		column(g, func(g **ledger.OpenGrant) string { return (*g).ID }),
		column(g, func(g **ledger.OpenGrant) string { return string((*g).Source) }),
		column(g, func(g **ledger.OpenGrant) int64 { return (*g).Amount }),
		column(g, func(g **ledger.OpenGrant) int32 { return (*g).Priority }),
		column(g, func(g **ledger.OpenGrant) time.Time { return (*g).EffectiveAt }),
		column(g, func(g **ledger.OpenGrant) time.Time { return (*g).ExpiresAt }),
		column(g, func(g **ledger.OpenGrant) string { return (*g).CostBasis }),
		column(g, func(g **ledger.OpenGrant) string { return (*g).Reason }),
		column(g, func(g **ledger.OpenGrant) string { return (*g).OperationID }),
		column(g, func(g **ledger.OpenGrant) time.Time { return (*g).CreatedAt }),
		column(g, func(g **ledger.OpenGrant) int64 { return (*g).Remaining }),
		column(g, func(g **ledger.OpenGrant) int64 { return (*g).Held }),
		column(g, func(g **ledger.OpenGrant) string { return string((*g).Status) }),
	)
}

func queueGrants(q map[string]string, out *pgx.Batch, g []*ledger.OpenGrant) {
	out.Queue(q["UpdateGrants"],
		column(g, func(g **ledger.OpenGrant) string { return (*g).Tenant }),
		column(g, func(g **ledger.OpenGrant) string { return (*g).Meter }),
		column(g, func(g **ledger.OpenGrant) string { return (*g).Subject }),
		column(g, func(g **ledger.OpenGrant) string { return (*g).ID }),
		column(g, func(g **ledger.OpenGrant) int64 { return (*g).Remaining }),
		column(g, func(g **ledger.OpenGrant) int64 { return (*g).Held }),
		column(g, func(g **ledger.OpenGrant) string { return string((*g).Status) }),
		int64(len(g)),
	)
}

// queueExtended writes the later ends of the grants that were extended.
func queueExtended(q map[string]string, out *pgx.Batch, changed []*ledger.OpenGrant) {
	var keys []ledger.GrantKey
	var ends []time.Time
	for _, g := range changed {
		if g.Extended {
			keys, ends = append(keys, ledger.GrantKey{BalanceKey: ledger.BalanceKey{Tenant: g.Tenant, Meter: g.Meter, Subject: g.Subject}, ID: g.ID}), append(ends, g.ExpiresAt)
		}
	}
	if tenants, meters, subjects, ids := grantColumns(keys); len(keys) > 0 {
		out.Queue(q["ExtendGrants"], tenants, meters, subjects, ids, ends, int64(len(keys)))
	}
}

func queuePeriods(q map[string]string, out *pgx.Batch, p []ledger.PeriodRow) {
	out.Queue(q["InsertPeriods"],
		column(p, func(p *ledger.PeriodRow) string { return p.Tenant }),
		column(p, func(p *ledger.PeriodRow) string { return p.Meter }),
		column(p, func(p *ledger.PeriodRow) string { return p.Subject }),
		column(p, func(p *ledger.PeriodRow) time.Time { return p.Start }),
		column(p, func(p *ledger.PeriodRow) time.Time { return p.End }),
		column(p, func(p *ledger.PeriodRow) string { return p.Plan }),
		column(p, func(p *ledger.PeriodRow) int32 { return p.PlanVersion }),
		column(p, func(p *ledger.PeriodRow) int64 { return p.Opening }),
		column(p, func(p *ledger.PeriodRow) int64 { return p.Granted }),
		column(p, func(p *ledger.PeriodRow) int64 { return p.Refunded }),
		column(p, func(p *ledger.PeriodRow) int64 { return p.Used }),
		column(p, func(p *ledger.PeriodRow) int64 { return p.Expired }),
		column(p, func(p *ledger.PeriodRow) int64 { return p.Adjusted }),
		column(p, func(p *ledger.PeriodRow) int64 { return p.Overage }),
		column(p, func(p *ledger.PeriodRow) int64 { return p.Held }),
		column(p, func(p *ledger.PeriodRow) int64 { return p.Closing }),
		column(p, func(p *ledger.PeriodRow) int64 { return p.LastSeq }),
		column(p, func(p *ledger.PeriodRow) time.Time { return p.ClosedAt }),
		column(p, func(p *ledger.PeriodRow) int64 { return p.Idle }),
		column(p, func(p *ledger.PeriodRow) *time.Time { return period.OrNil(p.TermsAt) }),
		column(p, func(p *ledger.PeriodRow) int64 { return p.RolledOver }),
		column(p, func(p *ledger.PeriodRow) int64 { return p.Rollover }),
		column(p, func(p *ledger.PeriodRow) int64 { return p.Owing }),
		column(p, func(p *ledger.PeriodRow) int64 { return p.Amended }),
	)
}

func queueHolds(q map[string]string, out *pgx.Batch, c *ledger.Changes) {
	if rows := c.Holds; len(rows) > 0 {
		out.Queue(q["WriteHolds"],
			column(rows, func(h **ledger.HoldRow) string { return (*h).Tenant }),
			column(rows, func(h **ledger.HoldRow) string { return (*h).ID }),
			column(rows, func(h **ledger.HoldRow) string { return (*h).Subject }),
			column(rows, func(h **ledger.HoldRow) string { return string((*h).Status) }),
			column(rows, func(h **ledger.HoldRow) []byte { return mustJSON((*h).Items) }),
			column(rows, func(h **ledger.HoldRow) time.Time { return (*h).CreatedAt }),
			column(rows, func(h **ledger.HoldRow) time.Time { return (*h).ExpiresAt }),
		)
	}
	if lines := c.NewHoldLines; len(lines) > 0 {
		queueNewHoldLines(q, out, lines)
	}
	if lines := c.HoldLines; len(lines) > 0 {
		out.Queue(q["UpdateHoldLines"],
			column(lines, func(h **ledger.HoldLine) string { return (*h).Tenant }),
			column(lines, func(h **ledger.HoldLine) string { return (*h).HoldID }),
			column(lines, func(h **ledger.HoldLine) int32 { return (*h).Line }),
			column(lines, func(h **ledger.HoldLine) int64 { return (*h).Captured }),
			column(lines, func(h **ledger.HoldLine) int64 { return (*h).Returned }),
			column(lines, func(h **ledger.HoldLine) time.Time { return (*h).ExpiresAt }),
			int64(len(lines)),
			column(lines, func(h **ledger.HoldLine) string { return (*h).PaysFor }),
			column(lines, func(h **ledger.HoldLine) int64 { return (*h).Deferred }),
			column(lines, func(h **ledger.HoldLine) int64 { return (*h).Refunded }),
			column(lines, func(h **ledger.HoldLine) int64 { return (*h).Beyond }),
		)
	}
}

func queueNewHoldLines(q map[string]string, out *pgx.Batch, h []*ledger.HoldLine) {
	out.Queue(q["InsertHoldLines"],
		column(h, func(h **ledger.HoldLine) string { return (*h).Tenant }),
		column(h, func(h **ledger.HoldLine) string { return (*h).HoldID }),
		column(h, func(h **ledger.HoldLine) int32 { return (*h).Line }),
		column(h, func(h **ledger.HoldLine) int32 { return (*h).Item }),
		column(h, func(h **ledger.HoldLine) string { return (*h).Meter }),
		column(h, func(h **ledger.HoldLine) string { return (*h).Subject }),
		column(h, func(h **ledger.HoldLine) string { return (*h).Grant }),
		column(h, func(h **ledger.HoldLine) string { return string((*h).Source) }),
		column(h, func(h **ledger.HoldLine) int64 { return (*h).Price }),
		column(h, func(h **ledger.HoldLine) int64 { return (*h).Per }),
		column(h, func(h **ledger.HoldLine) int64 { return (*h).Paid }),
		column(h, func(h **ledger.HoldLine) int64 { return (*h).Amount }),
		column(h, func(h **ledger.HoldLine) int64 { return (*h).Captured }),
		column(h, func(h **ledger.HoldLine) int64 { return (*h).Returned }),
		column(h, func(h **ledger.HoldLine) time.Time { return (*h).ExpiresAt }),
		column(h, func(h **ledger.HoldLine) string { return (*h).PaysFor }),
		column(h, func(h **ledger.HoldLine) int64 { return (*h).Deferred }),
		column(h, func(h **ledger.HoldLine) int64 { return (*h).Refunded }),
		column(h, func(h **ledger.HoldLine) int64 { return (*h).Beyond }),
	)
}

func queueRefunds(q map[string]string, out *pgx.Batch, r []ledger.RefundRow) {
	out.Queue(q["WriteRefunds"],
		column(r, func(r *ledger.RefundRow) string { return r.Tenant }),
		column(r, func(r *ledger.RefundRow) string { return r.Key }),
		column(r, func(r *ledger.RefundRow) time.Time { return r.Month.First() }),
		column(r, func(r *ledger.RefundRow) int32 { return r.Line }),
		column(r, func(r *ledger.RefundRow) int64 { return r.Amount }),
		column(r, func(r *ledger.RefundRow) int64 { return r.Units }),
	)
}

// mustJSON encodes a slice of plain structs, which cannot fail.
func mustJSON(v any) []byte {
	out, err := json.Marshal(v)
	if err != nil {
		panic("ledger: encode a row: " + err.Error())
	}
	return out
}
