package auditlog

import (
	"context"
	"encoding/base64"
	"encoding/json/jsontext"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/quotasvc/quotasvc/internal/kit/null"
	"github.com/quotasvc/quotasvc/internal/kit/period"
)

// Query selects lines of the audit log. An empty field does not restrict the lines.
type Query struct {
	Tenant, Actor, Action string
	From, To              time.Time // From is inclusive, To is exclusive
	Limit                 int       // at least 1
	Cursor                string    // empty for the first page, otherwise the NextCursor of the page before
}

// Recorded is a line that is stored in the audit log.
type Recorded struct {
	ID            int64
	At            time.Time
	Actor         Actor // without Admin
	Action        string
	Object        Object
	Before, After jsontext.Value // nil: the object did not exist, or no longer exists
	Reason        string
}

// Page is one page of lines, the newest line first.
type Page struct {
	Items      []Recorded
	NextCursor string // empty on the last page
}

// ErrCursor means that a cursor is not the NextCursor of a page.
var ErrCursor = errors.New("an unknown cursor")

// List returns a page of the lines that q selects. It fails with ErrCursor, or with an error of the driver.
func List(ctx context.Context, tx pgx.Tx, q Query) (Page, error) {
	var at *time.Time
	var id *int64
	if q.Cursor != "" {
		raw, err := base64.RawURLEncoding.DecodeString(q.Cursor)
		var micro, n int64
		if err == nil {
			_, err = fmt.Sscanf(string(raw), "%d %d", &micro, &n)
		}
		if err != nil {
			return Page{}, ErrCursor
		}
		at, id = new(time.UnixMicro(micro)), &n
	}
	rows, _ := tx.Query(ctx, queries["SelectLines"], null.IfZero(q.Tenant), null.IfZero(q.Actor), null.IfZero(q.Action),
		period.OrNil(q.From), period.OrNil(q.To), at, id, q.Limit+1)
	items, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (Recorded, error) {
		var r Recorded
		var before, after []byte
		err := row.Scan(&r.ID, &r.At, &r.Actor.KeyID, &r.Actor.Name, &r.Action, &r.Object.Kind, &r.Object.ID, &r.Object.Tenant, &before, &after,
			&r.Reason, &r.Actor.RequestID, &r.Actor.IP)
		r.At, r.Before, r.After = r.At.UTC(), before, after
		return r, err
	})
	if err != nil {
		return Page{}, fmt.Errorf("read the audit log: %w", err)
	}
	page := Page{Items: items}
	if len(items) > q.Limit {
		page.Items = items[:q.Limit]
		last := &page.Items[q.Limit-1]
		page.NextCursor = base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, "%d %d", last.At.UnixMicro(), last.ID))
	}
	return page, nil
}
