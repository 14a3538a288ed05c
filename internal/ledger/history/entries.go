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
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	if err := r.ledger.MustExist(ctx, q.Tenant); err != nil {
		return EntryPage{}, err
	}
	name, meter := "EntriesOfMeter", q.Meter
	if meter == "" {
		name, meter = "EntriesOfTenant", after[0]
	}
	from, to := q.From, q.To
	if from.IsZero() {
		from = period.Earliest
	}
	if to.IsZero() {
		to = period.Latest
	}
	rows, err := r.pool.Query(ctx, r.sql[name], q.Tenant, meter, after[1], seq, monthOf(from), monthOf(to), from, to,
		q.Kind, q.Subject, q.Limit+1)
	if err != nil {
		return EntryPage{}, unavailable("read entries", err)
	}
	items, err := pg.CollectEntries(rows)
	if err != nil {
		return EntryPage{}, unavailable("read entries", err)
	}
	page := EntryPage{Items: items}
	if len(items) > q.Limit {
		last := items[q.Limit-1]
		page.Items, page.NextCursor = items[:q.Limit], pg.SealCursor(last.Meter, last.Subject, strconv.FormatInt(last.Seq, 10))
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

// OperationRecord is one operation with all its entries.
type OperationRecord struct {
	ID, Tenant string
	Kind       ledger.EntryKind // of its first entry
	CreatedAt  time.Time
	Entries    []ledger.Entry
}

// Operation looks up an operation by its id: the Idempotency-Key of the request, or the id of an operation that the ledger made by itself. Of
// several with this id it returns the newest, or the newest at or before at unless at is zero.
func (r *Reader) Operation(ctx context.Context, tenant, id string, at time.Time) (*OperationRecord, error) {
	if e := ledger.FirstOf(ledger.ValidateID("tenant", tenant), ledger.ValidateInstant("at", at)); e != nil {
		return nil, e
	}
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	if err := r.ledger.MustExist(ctx, tenant); err != nil {
		return nil, err
	}
	if len(id) > 1024 || !pg.ValidText(id) {
		return nil, ledger.Errorf(ledger.CodeOperationNotFound, "operation_id", "no such operation of tenant %q", tenant)
	}
	rows, err := r.pool.Query(ctx, r.sql["EntriesOfOperation"], tenant, id)
	if err != nil {
		return nil, unavailable("read operation", err)
	}
	entries, err := pg.CollectEntries(rows)
	if err != nil {
		return nil, unavailable("read operation", err)
	}
	named := ledger.OperationRef{OperationID: ledger.OperationID{Tenant: tenant, Key: id}, At: at}
	if entries = named.Among(entries); len(entries) == 0 {
		return nil, named.NotFound()
	}
	return &OperationRecord{ID: id, Tenant: tenant, Kind: entries[0].Kind, CreatedAt: entries[0].CreatedAt, Entries: entries}, nil
}
