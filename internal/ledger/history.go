package ledger

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/quotasvc/quotasvc/internal/period"
)

// PageMax bounds one page of a list.
const PageMax = 500

// Entry is one immutable line of the journal.
type Entry struct {
	Tenant, OperationID    string
	Line                   int32
	Seq                    int64
	Kind                   string
	Meter, Subject         string
	PeriodStart            time.Time
	Grant                  string
	Source                 Source
	Amount, RemainingAfter int64
	Item                   int32
	CreatedAt              time.Time
	EffectiveAt            time.Time // when a line of the ledger's own was due; equals CreatedAt for clients' lines
	OpSubject              string
	Detail, Metadata       json.RawMessage // nil when there is none
}

// EntryQuery selects entries of a tenant. Order: meter, subject, seq.
type EntryQuery struct {
	Tenant   string
	Meter    string    // '' = all
	Subject  string    // '' = all
	Kind     string    // '' = all
	From, To time.Time // [From, To) of created_at; zero = open
	Limit    int       // 1..PageMax
	Cursor   string    // from the page before
}

// EntryPage is a page of entries; NextCursor is ” on the last.
type EntryPage struct {
	Items      []Entry
	NextCursor string
}

// Entries returns a page of a tenant's journal.
func (l *Ledger) Entries(ctx context.Context, q EntryQuery) (EntryPage, error) {
	if e := firstOf(validID("tenant", q.Tenant), validSubject(q.Subject), validLimit(q.Limit), validInstant("from", q.From), validInstant("to", q.To)); e != nil {
		return EntryPage{}, e
	}
	if q.Meter != "" && !ValidID(q.Meter) {
		return EntryPage{}, validID("meter", q.Meter)
	}
	if q.Kind != "" && !slices.Contains(EntryKinds(), q.Kind) {
		return EntryPage{}, errorf(CodeInvalidArgument, "kind", "must be %s", strings.Join(EntryKinds(), ", "))
	}
	if !q.From.IsZero() && !q.To.IsZero() && !q.To.After(q.From) {
		return EntryPage{}, errorf(CodeInvalidArgument, "to", "must be later than from")
	}
	after, err := openCursor(q.Cursor, 3)
	if err != nil {
		return EntryPage{}, err
	}
	if q.Cursor != "" && q.Meter != "" && after[0] != q.Meter {
		return EntryPage{}, errorf(CodeInvalidArgument, "cursor", "is of another list than this one of meter %q", q.Meter)
	}
	seq := int64(0)
	if q.Cursor != "" {
		if seq, err = strconv.ParseInt(after[2], 10, 64); err != nil {
			return EntryPage{}, errorf(CodeInvalidArgument, "cursor", "is not one this service gave out")
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
	rows, err := l.readers.Query(ctx, l.queries[name], q.Tenant, meter, after[1], seq, monthOf(from), monthOf(to), from, to,
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

func monthOf(t time.Time) time.Time {
	return time.Date(t.UTC().Year(), t.UTC().Month(), 1, 0, 0, 0, 0, time.UTC)
}

func collectEntries(rows pgx.Rows) ([]Entry, error) {
	var l line
	items := []Entry{}
	_, err := pgx.ForEachRow(rows, lineTargets(&l), func() error {
		items = append(items, l.public())
		l = line{}
		return nil
	})
	return items, err
}

func (l *line) public() Entry {
	e := Entry{
		Tenant: l.Tenant, OperationID: l.operationID, Line: l.line, Seq: l.seq, Kind: l.kind, Meter: l.Meter, Subject: l.Subject,
		PeriodStart: l.periodStart.UTC(), Grant: l.grantID, Source: l.source, Amount: l.amount, RemainingAfter: l.remainingAfter,
		Item: l.item, CreatedAt: l.createdAt.UTC(), EffectiveAt: l.createdAt.UTC(), Detail: l.detail, Metadata: l.metadata,
	}
	if l.effectiveAt != nil {
		e.EffectiveAt = l.effectiveAt.UTC()
	}
	if l.opSubject != nil {
		e.OpSubject = *l.opSubject
	}
	return e
}

// Operation is one mutation with all it wrote.
type Operation struct {
	ID, Tenant string
	Kind       string // of its first line
	CreatedAt  time.Time
	Entries    []Entry
}

// Operation looks an operation up by its id, which is the Idempotency-Key it was sent with.
func (l *Ledger) Operation(ctx context.Context, tenant, id string) (*Operation, error) {
	if e := validID("tenant", tenant); e != nil {
		return nil, e
	}
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	if err := l.mustExist(ctx, tenant); err != nil {
		return nil, err
	}
	if len(id) > 1024 || strings.ContainsRune(id, 0) || !validText(id) {
		return nil, errorf(CodeOperationNotFound, "operation_id", "no such operation of tenant %q", tenant)
	}
	rows, err := l.readers.Query(ctx, l.queries["EntriesOfOperation"], tenant, id)
	if err != nil {
		return nil, unavailable("read operation", err)
	}
	entries, err := collectEntries(rows)
	if err != nil {
		return nil, unavailable("read operation", err)
	}
	if len(entries) == 0 {
		return nil, errorf(CodeOperationNotFound, "operation_id", "tenant %q has no operation %q", tenant, id)
	}
	return &Operation{ID: id, Tenant: tenant, Kind: entries[0].Kind, CreatedAt: entries[0].CreatedAt, Entries: entries}, nil
}

// GrantQuery selects grants of a tenant. Order: meter, subject, grant id.
type GrantQuery struct {
	Tenant string
	Meter  string // '' = all
	Limit  int    // 1..PageMax
	Cursor string
}

// GrantPage is a page of grants; NextCursor is ” on the last.
type GrantPage struct {
	Items      []GrantRecord
	NextCursor string
}

// Grants returns a page of a tenant's grants, closed ones included.
func (l *Ledger) Grants(ctx context.Context, q GrantQuery) (GrantPage, error) {
	if e := firstOf(validID("tenant", q.Tenant), validLimit(q.Limit)); e != nil {
		return GrantPage{}, e
	}
	if q.Meter != "" && !ValidID(q.Meter) {
		return GrantPage{}, validID("meter", q.Meter)
	}
	after, err := openCursor(q.Cursor, 3)
	if err != nil {
		return GrantPage{}, err
	}
	if q.Cursor != "" && q.Meter != "" && after[0] != q.Meter {
		return GrantPage{}, errorf(CodeInvalidArgument, "cursor", "is of another list than this one of meter %q", q.Meter)
	}
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	if err := l.mustExist(ctx, q.Tenant); err != nil {
		return GrantPage{}, err
	}
	rows, err := l.readers.Query(ctx, l.queries["GrantsPage"], q.Tenant, after[0], after[1], after[2], q.Meter, q.Limit+1)
	if err != nil {
		return GrantPage{}, unavailable("read grants", err)
	}
	items, now := []GrantRecord{}, l.estimate()
	var g GrantRecord
	_, err = pgx.ForEachRow(rows, grantTargets(&g), func() error {
		items = append(items, g.seenAt(now))
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

// seenAt shows a grant as it is at now, though its expiry or effect may not have been written yet.
func (g GrantRecord) seenAt(now time.Time) GrantRecord {
	g.EffectiveAt, g.ExpiresAt, g.CreatedAt = g.EffectiveAt.UTC(), g.ExpiresAt.UTC(), g.CreatedAt.UTC()
	if g.Status == GrantPending && !g.EffectiveAt.After(now) {
		g.Status, g.Remaining = GrantActive, g.Amount
	}
	if g.Status == GrantActive && !g.ExpiresAt.After(now) {
		g.Status, g.Remaining = GrantExpired, 0
	}
	if g.Status == GrantActive && g.Remaining == 0 && g.Held == 0 {
		g.Status = GrantExhausted
	}
	return g.public()
}

func validLimit(n int) *Error {
	if n < 1 || n > PageMax {
		return errorf(CodeInvalidArgument, "limit", "must be an integer from 1 to %d", PageMax)
	}
	return nil
}

func validText(s string) bool { return strings.ToValidUTF8(s, "") == s }

// Cursors are opaque to callers: the parts of the last key, length-free because ids hold no newline.
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
		return nil, errorf(CodeInvalidArgument, "cursor", "is not one this service gave out")
	}
	return parts, nil
}
