package history

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/quotasvc/quotasvc/internal/bound"
	"github.com/quotasvc/quotasvc/internal/ledger"
	"github.com/quotasvc/quotasvc/internal/ledger/pg"
	"github.com/quotasvc/quotasvc/internal/period"
)

// EntryQuery selects entries of a tenant. Order: meter, subject, seq.
type EntryQuery struct {
	Tenant   string
	Meter    string           // empty: all
	Subject  string           // empty: all
	Kind     ledger.EntryKind // empty: all
	From, To time.Time        // [From, To) of created_at; zero: no bound
	Limit    int              // 1..pg.PageMax
	Cursor   string           // NextCursor of the page before; empty: the first page
}

// EntryPage is a page of entries. NextCursor is empty on the last page.
type EntryPage struct {
	Items      []ledger.Entry
	NextCursor string
}

// Entries returns a page of a tenant's journal.
func (r *Reader) Entries(ctx context.Context, q EntryQuery) (EntryPage, error) {
	if e := ledger.FirstOf(ledger.ValidateID("tenant", q.Tenant), ledger.ValidateSubject(q.Subject), pg.ValidLimit(q.Limit), ledger.ValidateInstant("from", q.From), ledger.ValidateInstant("to", q.To)); e != nil {
		return EntryPage{}, e
	}
	if q.Meter != "" && !bound.ID(q.Meter) {
		return EntryPage{}, ledger.ValidateID("meter", q.Meter)
	}
	if q.Kind != "" && !slices.Contains(ledger.EntryKinds(), q.Kind) {
		return EntryPage{}, ledger.Errorf(ledger.CodeInvalidArgument, "kind", "must be one of: %s", strings.Join(kindNames(), ", "))
	}
	if !q.From.IsZero() && !q.To.IsZero() && !q.To.After(q.From) {
		return EntryPage{}, ledger.Errorf(ledger.CodeInvalidArgument, "to", "must be later than from")
	}
	after, err := pg.OpenCursor(q.Cursor, 3)
	if err != nil {
		return EntryPage{}, err
	}
	if q.Cursor != "" && q.Meter != "" && after[0] != q.Meter {
		return EntryPage{}, ledger.Errorf(ledger.CodeInvalidArgument, "cursor", "belongs to another list, not to this one of meter %q", q.Meter)
	}
	seq := int64(0)
	if q.Cursor != "" {
		if seq, err = strconv.ParseInt(after[2], 10, 64); err != nil {
			return EntryPage{}, ledger.Errorf(ledger.CodeInvalidArgument, "cursor", "unknown cursor")
		}
	}
	return reported(ctx, r, func(ctx context.Context, rep *report) (EntryPage, error) {
		if err := r.ledger.MustExist(ctx, q.Tenant); err != nil {
			return EntryPage{}, err
		}
		return rep.entries(ctx, &q, after, seq)
	})
}

func (q *report) entries(ctx context.Context, ask *EntryQuery, after []string, seq int64) (EntryPage, error) {
	name, meter := "EntriesOfMeter", ask.Meter
	if meter == "" {
		name, meter = "EntriesOfTenant", after[0]
	}
	from, to := ask.From, ask.To
	if from.IsZero() {
		from = period.Earliest
	}
	if to.IsZero() {
		to = period.Latest
	}
	rows, err := q.pool.Query(ctx, q.sql[name], ask.Tenant, meter, after[1], seq, monthOf(from), monthOf(to), from, to,
		ask.Kind, ask.Subject, ask.Limit+1)
	if err != nil {
		return EntryPage{}, failed("read entries", err)
	}
	items, err := pg.CollectEntries(rows)
	if err != nil {
		return EntryPage{}, failed("read entries", err)
	}
	page := EntryPage{Items: items}
	if len(items) > ask.Limit {
		last := items[ask.Limit-1]
		page.Items, page.NextCursor = items[:ask.Limit], pg.SealCursor(last.Meter, last.Subject, strconv.FormatInt(last.Seq, 10))
	}
	return page, nil
}

func kindNames() []string {
	kinds := ledger.EntryKinds()
	names := make([]string, len(kinds))
	for i, k := range kinds {
		names[i] = string(k)
	}
	return names
}

func monthOf(t time.Time) time.Time {
	return time.Date(t.UTC().Year(), t.UTC().Month(), 1, 0, 0, 0, 0, time.UTC)
}
