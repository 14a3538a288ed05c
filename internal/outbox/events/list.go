package events

import (
	"context"
	"encoding/json/jsontext"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/quotasvc/quotasvc/internal/kit/null"
)

// An event's id is idPrefix and its position in idDigits digits. So the order of ids is the order of events.
const (
	idPrefix = "evt_"
	idDigits = 16
)

// Listed is an event with its position in the list.
type Listed struct {
	Position int64
	Type     Type
	At       time.Time
	Tenant   string
	Meter    string
	Subject  string
	Data     jsontext.Value
}

// ID returns the event's id.
func (l *Listed) ID() string { return IDOf(l.Position) }

// IDOf returns the id of the event at a position.
func IDOf(position int64) string { return fmt.Sprintf("%s%0*d", idPrefix, idDigits, position) }

// ParseID returns the position that id contains. It returns false if id is not the id of an event. It does not check
// whether the event exists.
func ParseID(id string) (position int64, ok bool) {
	digits, ours := strings.CutPrefix(id, idPrefix)
	if !ours || len(digits) != idDigits || strings.Trim(digits, "0123456789") != "" {
		return 0, false
	}
	position, err := strconv.ParseInt(digits, 10, 64)
	return position, err == nil
}

// Query selects events. An empty field does not restrict the events.
type Query struct {
	Tenant string
	Type   string
	After  string // id of the event before the first event of the page; empty: the page starts with the oldest event
	Cursor string // empty for the first page, otherwise the NextCursor of the page before
	Limit  int    // at least 1
}

// Page is one page of events, the oldest event first.
type Page struct {
	Items      []Listed
	NextCursor string // empty on the last page
}

// Errors of List for a wrong cursor or id of a client.
var (
	ErrCursor = errors.New("an unknown cursor")
	ErrAfter  = errors.New("not the id of an event")
)

// List returns a page of the events that q selects and that are at most Kept old. It fails with ErrCursor or
// ErrAfter, or with an error of the driver.
func List(ctx context.Context, tx pgx.Tx, now time.Time, q Query) (Page, error) {
	after := int64(0)
	for _, from := range []struct {
		id  string
		bad error
	}{{q.After, ErrAfter}, {q.Cursor, ErrCursor}} {
		if from.id == "" {
			continue
		}
		position, ok := ParseID(from.id)
		if !ok {
			return Page{}, from.bad
		}
		after = max(after, position)
	}
	var l listing
	if err := l.read(tx.QueryRow(ctx, queries["Listing"])); err != nil {
		return Page{}, fmt.Errorf("list events: %w", err)
	}
	rows, _ := tx.Query(ctx, queries["SelectEvents"], after, null.IfZero(q.Tenant), null.IfZero(q.Type), now.Add(-Kept), q.Limit+1, l.to)
	items, err := pgx.CollectRows(rows, Scan)
	if err != nil {
		return Page{}, fmt.Errorf("list events: %w", err)
	}
	page := Page{Items: items}
	if len(items) > q.Limit {
		page.Items = items[:q.Limit]
		page.NextCursor = page.Items[q.Limit-1].ID()
	}
	return page, nil
}

// Scan reads an event from the columns tenant, type, at, meter, subject, data and position.
func Scan(row pgx.CollectableRow) (Listed, error) {
	var l Listed
	var data []byte
	err := row.Scan(&l.Tenant, &l.Type, &l.At, &l.Meter, &l.Subject, &data, &l.Position)
	l.At, l.Data = l.At.UTC(), data
	return l, err
}
