package pg

import (
	"context"
	"encoding/base64"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/quotasvc/quotasvc/internal/bound"
	"github.com/quotasvc/quotasvc/internal/ledger"
	"github.com/quotasvc/quotasvc/internal/period"
)

// PageMax bounds one page of a list.
const PageMax = 500

// EntryQuery selects entries of a tenant. Order: meter, subject, seq.
type EntryQuery struct {
	Tenant   string
	Meter    string           // empty: all
	Subject  string           // empty: all
	Kind     ledger.EntryKind // empty: all
	From, To time.Time        // [From, To) of created_at; zero: no bound
	Limit    int              // 1..PageMax
	Cursor   string           // NextCursor of the page before; empty: the first page
}

// EntryPage is a page of entries. NextCursor is empty on the last page.
type EntryPage struct {
	Items      []ledger.Entry
	NextCursor string
}

// Entries returns a page of a tenant's journal.
func (l *Ledger) Entries(ctx context.Context, q EntryQuery) (EntryPage, error) {
	if e := ledger.FirstOf(ledger.ValidateID("tenant", q.Tenant), ledger.ValidateSubject(q.Subject), validLimit(q.Limit), ledger.ValidateInstant("from", q.From), ledger.ValidateInstant("to", q.To)); e != nil {
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
	after, err := openCursor(q.Cursor, 3)
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
	if err := l.mustExist(ctx, q.Tenant); err != nil {
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
	rows, err := l.readers.Query(ctx, l.sql[name], q.Tenant, meter, after[1], seq, monthOf(from), monthOf(to), from, to,
		q.Kind, q.Subject, q.Limit+1)
	if err != nil {
		return EntryPage{}, unavailable("read entries", err)
	}
	items, err := collectEntries(rows)
	if err != nil {
		return EntryPage{}, unavailable("read entries", err)
	}
	page := EntryPage{Items: items}
	if len(items) > q.Limit {
		last := items[q.Limit-1]
		page.Items, page.NextCursor = items[:q.Limit], sealCursor(last.Meter, last.Subject, strconv.FormatInt(last.Seq, 10))
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

func collectEntries(rows pgx.Rows) ([]ledger.Entry, error) {
	var row entryRow
	items := []ledger.Entry{}
	_, err := pgx.ForEachRow(rows, row.targets(), func() error {
		items = append(items, row.take())
		return nil
	})
	return items, err
}

// OperationRecord is one operation with all its entries.
type OperationRecord struct {
	ID, Tenant string
	Kind       ledger.EntryKind // of its first entry
	CreatedAt  time.Time
	Entries    []ledger.Entry
}

// Operation looks up an operation by its id: the Idempotency-Key of the request, or the id of an operation that the ledger made by itself.
func (l *Ledger) Operation(ctx context.Context, tenant, id string) (*OperationRecord, error) {
	if e := ledger.ValidateID("tenant", tenant); e != nil {
		return nil, e
	}
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	if err := l.mustExist(ctx, tenant); err != nil {
		return nil, err
	}
	if len(id) > 1024 || strings.ContainsRune(id, 0) || !validText(id) {
		return nil, ledger.Errorf(ledger.CodeOperationNotFound, "operation_id", "no such operation of tenant %q", tenant)
	}
	rows, err := l.readers.Query(ctx, l.sql["EntriesOfOperation"], tenant, id)
	if err != nil {
		return nil, unavailable("read operation", err)
	}
	entries, err := collectEntries(rows)
	if err != nil {
		return nil, unavailable("read operation", err)
	}
	if len(entries) == 0 {
		return nil, ledger.Errorf(ledger.CodeOperationNotFound, "operation_id", "tenant %q has no operation %q", tenant, id)
	}
	return &OperationRecord{ID: id, Tenant: tenant, Kind: entries[0].Kind, CreatedAt: entries[0].CreatedAt, Entries: entries}, nil
}

// GrantQuery selects grants of a tenant. Order: meter, subject, grant id.
type GrantQuery struct {
	Tenant string
	Meter  string // empty: all
	Limit  int    // 1..PageMax
	Cursor string
}

// GrantPage is a page of grants. NextCursor is empty on the last page.
type GrantPage struct {
	Items      []ledger.GrantRecord
	NextCursor string
}

// Grants returns a page of a tenant's grants, including those that have ended.
func (l *Ledger) Grants(ctx context.Context, q GrantQuery) (GrantPage, error) {
	if e := ledger.FirstOf(ledger.ValidateID("tenant", q.Tenant), validLimit(q.Limit)); e != nil {
		return GrantPage{}, e
	}
	if q.Meter != "" && !bound.ID(q.Meter) {
		return GrantPage{}, ledger.ValidateID("meter", q.Meter)
	}
	after, err := openCursor(q.Cursor, 3)
	if err != nil {
		return GrantPage{}, err
	}
	if q.Cursor != "" && q.Meter != "" && after[0] != q.Meter {
		return GrantPage{}, ledger.Errorf(ledger.CodeInvalidArgument, "cursor", "belongs to another list, not to this one of meter %q", q.Meter)
	}
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	if err := l.mustExist(ctx, q.Tenant); err != nil {
		return GrantPage{}, err
	}
	rows, err := l.readers.Query(ctx, l.sql["GrantsPage"], q.Tenant, after[0], after[1], after[2], q.Meter, q.Limit+1)
	if err != nil {
		return GrantPage{}, unavailable("read grants", err)
	}
	items, now := []ledger.GrantRecord{}, l.estimate()
	var g ledger.GrantRecord
	_, err = pgx.ForEachRow(rows, grantTargets(&g), func() error {
		items = append(items, g.At(now))
		return nil
	})
	if err != nil {
		return GrantPage{}, unavailable("read grants", err)
	}
	page := GrantPage{Items: items}
	if len(items) > q.Limit {
		last := items[q.Limit-1]
		page.Items, page.NextCursor = items[:q.Limit], sealCursor(last.Meter, last.Subject, last.ID)
	}
	return page, nil
}

func validLimit(n int) *ledger.Error {
	if n < 1 || n > PageMax {
		return ledger.Errorf(ledger.CodeInvalidArgument, "limit", "must be an integer from 1 to %d", PageMax)
	}
	return nil
}

func validText(s string) bool { return strings.ToValidUTF8(s, "") == s }

// sealCursor makes a cursor of the parts of the last key. Callers treat it as opaque. Ids contain no newline, so newlines separate the parts.
func sealCursor(parts ...string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(strings.Join(parts, "\n")))
}

func openCursor(cursor string, n int) ([]string, error) {
	if cursor == "" {
		return make([]string, n), nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(cursor)
	parts := strings.Split(string(raw), "\n")
	if err != nil || len(parts) != n || len(raw) > 1024 || strings.ContainsRune(string(raw), 0) || !validText(string(raw)) {
		return nil, ledger.Errorf(ledger.CodeInvalidArgument, "cursor", "unknown cursor")
	}
	return parts, nil
}
