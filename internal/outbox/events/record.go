package events

import (
	"context"
	"embed"
	"fmt"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/jackc/pgx/v5"

	"github.com/quotasvc/quotasvc/internal/store/namedsql"
)

// querier is a connection within a transaction, or a transaction.
type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// Wishes are the tenants for whom a webhook wants PeriodOpened, once a transaction has asked. The zero value has not asked.
type Wishes struct {
	tenants []string // "" stands for all
	known   bool
}

// Queue asks with a batch that the transaction sends anyway. Tell then need not ask. It is for transactions that most likely open periods.
func (w *Wishes) Queue(batch *pgx.Batch) {
	batch.Queue(queries["TenantsWhoWant"], string(PeriodOpened)).Query(w.scan)
}

func (w *Wishes) scan(rows pgx.Rows) error {
	tenants, err := pgx.CollectRows(rows, pgx.RowTo[string])
	w.tenants, w.known = tenants, err == nil
	return err
}

// Tell adds statements to a batch that insert what a transaction tells. It asks in the transaction first: for events that are told once, what was told
// before; for PeriodOpened, who wants it, unless wishes know. The caller holds the lock on the balances.
func Tell(ctx context.Context, tx querier, batch *pgx.Batch, told Told, wishes *Wishes) error {
	events, err := untold(ctx, tx, told.Events)
	if err != nil {
		return err
	}
	if events, err = wishes.granted(ctx, tx, events); err != nil {
		return err
	}
	if err := queue(batch, events); err != nil {
		return err
	}
	if len(told.Dropped) > 0 {
		batch.Queue(queries["DropReminders"], reminderColumns(told.Dropped)...)
	}
	if r := told.Reminders; len(r) > 0 {
		batch.Queue(queries["InsertReminders"], append(reminderColumns(r), column(r, func(r *Reminder) time.Time { return r.DueAt }))...)
	}
	return nil
}

// Record inserts events in a transaction. None of them is told once only.
func Record(ctx context.Context, tx pgx.Tx, events []Event) error {
	if len(events) == 0 {
		return nil
	}
	var batch pgx.Batch
	if err := queue(&batch, events); err != nil {
		return err
	}
	if err := tx.SendBatch(ctx, &batch).Close(); err != nil {
		return fmt.Errorf("insert events: %w", err)
	}
	return nil
}

// RecordOnce inserts those of events that were not told before. Each is told once (Event.Once), and none of them twice in one call. Nobody needs to hold a
// lock: of several transactions that tell the same at the same time one tells it, and the others wait until it is committed.
func RecordOnce(ctx context.Context, tx pgx.Tx, events []Event) error {
	if len(events) == 0 {
		return nil
	}
	rows, err := tx.Query(ctx, queries["ClaimMarks"], append(marks(events), column(events, func(e *Event) time.Time { return e.Once.End }))...)
	if err != nil {
		return fmt.Errorf("claim what is told: %w", err)
	}
	ours, err := pgx.CollectRows(rows, scanMark)
	if err != nil {
		return fmt.Errorf("claim what is told: %w", err)
	}
	told := slices.DeleteFunc(slices.Clone(events), func(e Event) bool { return !slices.ContainsFunc(ours, e.sameMark) })
	for i := range told {
		told[i].Once = nil // its mark is there
	}
	return Record(ctx, tx, told)
}

func queue(batch *pgx.Batch, events []Event) error {
	if len(events) == 0 {
		return nil
	}
	data := make([]string, len(events))
	for i := range events {
		text, err := json.Marshal(events[i].Data, json.Deterministic(true))
		if err != nil {
			return fmt.Errorf("encode the event %s: %w", events[i].Type, err)
		}
		data[i] = string(text)
	}
	batch.Queue(queries["InsertEvents"],
		column(events, func(e *Event) string { return e.Tenant }), column(events, func(e *Event) string { return string(e.Type) }),
		column(events, func(e *Event) time.Time { return e.At }), column(events, func(e *Event) string { return e.Meter }),
		column(events, func(e *Event) string { return e.Subject }), data)
	if once := slices.DeleteFunc(slices.Clone(events), func(e Event) bool { return e.Once == nil }); len(once) > 0 {
		batch.Queue(queries["InsertMarks"], append(marks(once), column(once, func(e *Event) time.Time { return e.Once.End }))...)
	}
	return nil
}

// marks returns the columns that name the marks of events.
func marks(once []Event) []any {
	return []any{
		column(once, func(e *Event) string { return e.Tenant }), column(once, func(e *Event) string { return e.Meter }),
		column(once, func(e *Event) string { return e.Subject }), column(once, func(e *Event) time.Time { return e.Once.Start }),
		column(once, func(e *Event) string { return e.Once.Mark }),
	}
}

// untold returns events without those that are told once and were told.
func untold(ctx context.Context, tx querier, events []Event) ([]Event, error) {
	once := slices.DeleteFunc(slices.Clone(events), func(e Event) bool { return e.Once == nil })
	if len(once) == 0 {
		return events, nil
	}
	rows, err := tx.Query(ctx, queries["SelectMarks"], marks(once)...)
	if err != nil {
		return nil, fmt.Errorf("look up what was told: %w", err)
	}
	before, err := pgx.CollectRows(rows, scanMark)
	if err != nil {
		return nil, fmt.Errorf("look up what was told: %w", err)
	}
	return slices.DeleteFunc(slices.Clone(events), func(e Event) bool { return e.Once != nil && slices.ContainsFunc(before, e.sameMark) }), nil
}

// scanMark reads the columns of a mark.
func scanMark(row pgx.CollectableRow) (e Event, err error) {
	e.Once = &Once{}
	err = row.Scan(&e.Tenant, &e.Meter, &e.Subject, &e.Once.Start, &e.Once.Mark)
	return e, err
}

// sameMark reports whether b, as it was stored, has the mark of e.
func (e *Event) sameMark(b Event) bool {
	return b.Tenant == e.Tenant && b.Meter == e.Meter && b.Subject == e.Subject && b.Once.Mark == e.Once.Mark &&
		b.Once.Start.Equal(e.Once.Start.Truncate(time.Microsecond)) // PostgreSQL's resolution
}

// granted returns events without those of type PeriodOpened that no webhook wants.
func (w *Wishes) granted(ctx context.Context, tx querier, events []Event) ([]Event, error) {
	if !slices.ContainsFunc(events, func(e Event) bool { return e.Type == PeriodOpened }) {
		return events, nil
	}
	if !w.known {
		rows, err := tx.Query(ctx, queries["TenantsWhoWant"], string(PeriodOpened))
		if err == nil {
			err = w.scan(rows)
		}
		if err != nil {
			return nil, fmt.Errorf("look up who wants an event: %w", err)
		}
	}
	return slices.DeleteFunc(slices.Clone(events), func(e Event) bool {
		return e.Type == PeriodOpened && !slices.Contains(w.tenants, "") && !slices.Contains(w.tenants, e.Tenant)
	}), nil
}

// column collects one field of every element, for unnest.
func column[E, F any](in []E, field func(*E) F) []F {
	out := make([]F, len(in))
	for i := range in {
		out[i] = field(&in[i])
	}
	return out
}

//go:embed sql/*.sql
var sqlFiles embed.FS

// queries are the statements of this package. Their files are embedded, so that loading them cannot fail at run time: a test loads them.
var queries = load()

func load() map[string]string {
	all, err := namedsql.Load(sqlFiles)
	if err != nil {
		panic(err)
	}
	return all
}
