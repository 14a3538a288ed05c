package events

import (
	"context"
	"embed"
	"encoding/json/v2"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/quotasvc/quotasvc/internal/store/namedsql"
)

// querier is a connection within a transaction, or a transaction.
type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// Subscribers lists the tenants with a webhook that subscribes to PeriodOpened. The list is read at most once per
// transaction. The zero value has no list yet.
type Subscribers struct {
	tenants []string // "" stands for all tenants
	loaded  bool
}

// Queue adds the query that reads the list to a batch that the transaction sends in any case. So Emit needs no round
// trip for this query. Queue is for transactions that will probably open periods.
func (s *Subscribers) Queue(batch *pgx.Batch) {
	batch.Queue(queries["TenantsWhoWant"], string(PeriodOpened)).Query(s.scan)
}

func (s *Subscribers) scan(rows pgx.Rows) error {
	tenants, err := pgx.CollectRows(rows, pgx.RowTo[string])
	s.tenants, s.loaded = tenants, err == nil
	return err
}

// Emit adds statements to batch that insert the events and reminders of emitted. First it reads, in the transaction,
// the marks of events with Event.Once. For PeriodOpened it also reads subscribers, unless they are already loaded.
// The caller must hold the lock on the balances.
func Emit(ctx context.Context, tx querier, batch *pgx.Batch, emitted Emitted, subscribers *Subscribers) error {
	events, err := withoutRepeated(ctx, tx, emitted.Events)
	if err != nil {
		return err
	}
	if events, err = subscribers.filterSubscribed(ctx, tx, events); err != nil {
		return err
	}
	if err := queue(batch, events); err != nil {
		return err
	}
	if len(emitted.Armed) > 0 {
		batch.Queue(queries["DropMarks"], markColumns(emitted.Armed)...)
	}
	if len(emitted.Dropped) > 0 {
		batch.Queue(queries["DropReminders"], reminderColumns(emitted.Dropped)...)
	}
	if r := emitted.Reminders; len(r) > 0 {
		batch.Queue(queries["InsertReminders"], append(reminderColumns(r), column(r, func(r *Reminder) time.Time { return r.DueAt }))...)
	}
	return nil
}

// Record inserts events in a transaction. Event.Once of the events must be nil.
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

// RecordOnce inserts the events that were not yet emitted in their period. Each event must have Event.Once, and one
// call must not contain the same event twice. The caller needs no lock. If several transactions emit the same event
// at the same time, one of them inserts it, and the others wait for its commit.
func RecordOnce(ctx context.Context, tx pgx.Tx, events []Event) error {
	if len(events) == 0 {
		return nil
	}
	rows, _ := tx.Query(ctx, queries["ClaimMarks"], append(marksOf(events), column(events, func(e *Event) time.Time { return e.Once.End }))...)
	ours, err := pgx.CollectRows(rows, scanMark)
	if err != nil {
		return fmt.Errorf("claim marks of events: %w", err)
	}
	fresh := slices.DeleteFunc(slices.Clone(events), func(e Event) bool { return !slices.ContainsFunc(ours, e.sameMark) })
	for i := range fresh {
		fresh[i].Once = nil // ClaimMarks has already inserted the mark
	}
	return Record(ctx, tx, fresh)
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
		batch.Queue(queries["InsertMarks"], append(marksOf(once), column(once, func(e *Event) time.Time { return e.Once.End }))...)
	}
	return nil
}

// marksOf returns the columns that identify the marks of the given events.
func marksOf(once []Event) []any { return markColumns(column(once, (*Event).mark)) }

func markColumns(marks []Mark) []any {
	return []any{
		column(marks, func(m *Mark) string { return m.Tenant }), column(marks, func(m *Mark) string { return m.Meter }),
		column(marks, func(m *Mark) string { return m.Subject }), column(marks, func(m *Mark) time.Time { return m.Start }),
		column(marks, func(m *Mark) string { return m.Name }),
	}
}

// withoutRepeated removes the events with Event.Once that were already emitted in their period and not armed since.
func withoutRepeated(ctx context.Context, tx querier, events []Event) ([]Event, error) {
	once := slices.DeleteFunc(slices.Clone(events), func(e Event) bool { return e.Once == nil || e.Once.Armed })
	if len(once) == 0 {
		return events, nil
	}
	rows, _ := tx.Query(ctx, queries["SelectMarks"], marksOf(once)...)
	before, err := pgx.CollectRows(rows, scanMark)
	if err != nil {
		return nil, fmt.Errorf("read marks of events: %w", err)
	}
	return slices.DeleteFunc(slices.Clone(events), func(e Event) bool {
		return e.Once != nil && !e.Once.Armed && slices.ContainsFunc(before, e.sameMark)
	}), nil
}

// scanMark reads the columns of a mark into an Event that has only these fields.
func scanMark(row pgx.CollectableRow) (e Event, err error) {
	e.Once = &Once{}
	err = row.Scan(&e.Tenant, &e.Meter, &e.Subject, &e.Once.Start, &e.Once.Mark)
	return e, err
}

// sameMark reports whether b, which was read from the database, has the same mark as e.
func (e *Event) sameMark(b Event) bool {
	return b.Tenant == e.Tenant && b.Meter == e.Meter && b.Subject == e.Subject && b.Once.Mark == e.Once.Mark &&
		b.Once.Start.Equal(e.Once.Start.Truncate(time.Microsecond)) // PostgreSQL stores microseconds
}

// filterSubscribed removes the events of type PeriodOpened that no webhook subscribes to.
func (s *Subscribers) filterSubscribed(ctx context.Context, tx querier, events []Event) ([]Event, error) {
	if !slices.ContainsFunc(events, func(e Event) bool { return e.Type == PeriodOpened }) {
		return events, nil
	}
	if !s.loaded {
		rows, err := tx.Query(ctx, queries["TenantsWhoWant"], string(PeriodOpened))
		if err == nil {
			err = s.scan(rows)
		}
		if err != nil {
			return nil, fmt.Errorf("read the subscribers of an event: %w", err)
		}
	}
	return slices.DeleteFunc(slices.Clone(events), func(e Event) bool {
		return e.Type == PeriodOpened && !slices.Contains(s.tenants, "") && !slices.Contains(s.tenants, e.Tenant)
	}), nil
}

// column returns a list with one field of each element of in, for unnest in SQL.
func column[E, F any](in []E, field func(*E) F) []F {
	out := make([]F, len(in))
	for i := range in {
		out[i] = field(&in[i])
	}
	return out
}

//go:embed sql/*.sql
var sqlFiles embed.FS

// queries are the SQL statements of this package. Loading cannot fail at run time: the files are embedded, and a test
// loads them.
var queries = namedsql.Must(namedsql.Plain, sqlFiles)
