package httpapi

import (
	"maps"
	"net/url"
	"slices"
	"time"

	"github.com/quotasvc/quotasvc/internal/body"
	"github.com/quotasvc/quotasvc/internal/bound"
	"github.com/quotasvc/quotasvc/internal/httpapi/wire"
)

const (
	// pageMax bounds a page: the contract's.
	pageMax = 500
	// pageDefault is a page nobody asked a size for.
	pageDefault = 100
	// cursorMax is longer than any cursor the service makes.
	cursorMax = 1024
)

// query takes the request's query parameters apart. Like a body it is strict: a parameter that is unknown or there twice is a
// fault, for a mistyped filter must not silently select everything.
type query struct {
	values url.Values
	faults body.Faults
}

// parse reads a query, which may have these parameters.
func (q *query) parse(raw string, names []string) error {
	values, err := url.ParseQuery(raw)
	if err != nil {
		return body.Refuse("query", "must be percent-encoded parameters separated by &")
	}
	q.values = values
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if !slices.Contains(names, name) {
			q.faults.Add(body.Clip(name), "is an unknown query parameter")
		} else if len(values[name]) > 1 {
			q.faults.Add(name, "must appear once")
		}
	}
	return q.err()
}

// err returns nil, or a *body.Error with all faults of the query.
func (q *query) err() error { return q.faults.Err() }

// integer returns a parameter of low to high.
func (q *query) integer(name string, low, high, absent int64) int64 {
	if !q.values.Has(name) {
		return absent
	}
	n, ok := body.ParseInteger(q.values.Get(name))
	if !ok || n < low || n > high {
		q.faults.Add(name, bound.MustBeInteger(low, high))
		return absent
	}
	return n
}

// id returns a parameter that is an id, or "" if it is absent.
func (q *query) id(name string) string {
	value := q.values.Get(name)
	if q.values.Has(name) && !bound.ID(value) {
		q.faults.Add(name, bound.MustBeID)
	}
	return value
}

// requiredID is id for a parameter that must be there.
func (q *query) requiredID(name string) string {
	if !q.values.Has(name) {
		q.faults.Add(name, "is required")
	}
	return q.id(name)
}

// instant returns a parameter that is a time; the zero time if it is absent.
func (q *query) instant(name string) time.Time {
	if !q.values.Has(name) {
		return time.Time{}
	}
	t, ok := body.ParseInstant(q.values.Get(name))
	if !ok {
		q.faults.Add(name, body.MustBeInstant())
	}
	return t
}

// requiredInstant is instant for a parameter that must be there.
func (q *query) requiredInstant(name string) time.Time {
	if !q.values.Has(name) {
		q.faults.Add(name, "is required")
	}
	return q.instant(name)
}

// word returns a parameter that is one of a few words, or "" if it is absent.
func (q *query) word(name string, words ...string) string {
	value := q.values.Get(name)
	if q.values.Has(name) && !slices.Contains(words, value) {
		q.faults.Add(name, body.OneOf(words...))
	}
	return value
}

// zone returns a parameter that is an IANA zone, or "" if it is absent.
func (q *query) zone(name string) string {
	value := q.values.Get(name)
	if q.values.Has(name) && !body.IsZone(value) {
		q.faults.Add(name, body.MustBeZone)
	}
	return value
}

// page returns limit and cursor.
func (q *query) page() (limit int, cursor string) {
	limit = int(q.integer("limit", 1, pageMax, pageDefault))
	cursor = q.values.Get("cursor")
	if q.values.Has("cursor") && !bound.ASCII(cursor, '!', 1, cursorMax) {
		q.faults.Add("cursor", "is an unknown cursor; it must be the next_cursor of the page before")
	}
	return limit, cursor
}

// nextCursor is a cursor as an answer has it: null on the last page.
func nextCursor(cursor string) wire.NextCursor {
	if cursor == "" {
		return nil
	}
	return &cursor
}
