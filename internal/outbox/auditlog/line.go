package auditlog

import (
	"context"
	"embed"
	"encoding/json/v2"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/quotasvc/quotasvc/internal/store/namedsql"
)

// Object identifies the object that was changed.
type Object struct {
	Kind   string // such as limit or grant
	ID     string
	Tenant string // empty: the object belongs to no tenant
}

// Line is a line of the audit log that is to be inserted.
type Line struct {
	Actor  *Actor
	Action string // kind of the object and of the change, such as limit.put
	Object Object
	Before any // encoded as JSON; nil: the object did not exist
	After  any // nil: the object no longer exists
	Reason string
}

// Queue adds a statement that inserts the lines to a batch. It adds nothing if there are no lines. It fails only if
// Before or After of a line cannot be encoded as JSON.
func Queue(batch *pgx.Batch, lines []Line) error {
	if len(lines) == 0 {
		return nil
	}
	c, err := columnsOf(lines)
	if err != nil {
		return err
	}
	batch.Queue(insertLines, c...)
	return nil
}

// Record inserts the lines in a transaction.
func Record(ctx context.Context, tx pgx.Tx, lines []Line) error {
	if len(lines) == 0 {
		return nil
	}
	c, err := columnsOf(lines)
	if err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, insertLines, c...); err != nil {
		return fmt.Errorf("record in the audit log: %w", err)
	}
	return nil
}

// columnsOf returns the arguments of the statement InsertLines.
func columnsOf(lines []Line) ([]any, error) {
	texts := make([][]string, 9)
	documents := make([][]*string, 2)
	for i := range lines {
		l := &lines[i]
		for at, text := range []string{
			l.Actor.KeyID, l.Actor.Name, l.Action, l.Object.Kind, l.Object.ID, l.Object.Tenant, l.Reason, l.Actor.RequestID, l.Actor.IP,
		} {
			texts[at] = append(texts[at], text)
		}
		for at, value := range []any{l.Before, l.After} {
			document, err := encode(value)
			if err != nil {
				return nil, fmt.Errorf("record %s: %w", l.Action, err)
			}
			documents[at] = append(documents[at], document)
		}
	}
	var args []any
	for _, column := range texts {
		args = append(args, column)
	}
	return append(args, documents[0], documents[1]), nil
}

// encode returns value as JSON text. It returns nil if value is nil.
func encode(value any) (*string, error) {
	if value == nil {
		return nil, nil
	}
	text, err := json.Marshal(value, json.Deterministic(true))
	if err != nil {
		return nil, fmt.Errorf("encode %T: %w", value, err)
	}
	return new(string(text)), nil
}

//go:embed sql/*.sql
var sqlFiles embed.FS

// queries are the SQL statements of this package. Loading cannot fail at run time: the files are embedded, and a test
// loads them.
var (
	queries     = namedsql.Must(namedsql.Plain, sqlFiles)
	insertLines = queries["InsertLines"]
)
