package httpapi

import (
	"context"
	"maps"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/quotasvc/quotasvc/client"
	"github.com/quotasvc/quotasvc/internal/httpapi/answers"
	"github.com/quotasvc/quotasvc/internal/kit/body"
	"github.com/quotasvc/quotasvc/internal/kit/bound"
	"github.com/quotasvc/quotasvc/internal/kit/listing"
)

const (
	// pageMax is the maximum size of a page, as in the contract.
	pageMax = 500
	// pageDefault is the size of a page if the client sends no limit.
	pageDefault = 100
	// cursorMax is the maximum length of a cursor in bytes. The service's own cursors are shorter.
	cursorMax = 1024
)

// query has the query parameters of a request. As in a body, unknown and duplicate parameters are faults: a mistyped
// filter must not select everything.
type query struct {
	values url.Values
	faults body.Faults
}

// parse parses a query. It permits the parameters in `names`. If `members` is not empty, it also permits parameters
// that begin with the text `members`.
func (q *query) parse(raw string, names []string, members string) error {
	values, err := url.ParseQuery(raw)
	if err != nil {
		return body.Refuse("query", "must be percent-encoded parameters separated by &")
	}
	q.values = values
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if !slices.Contains(names, name) && (members == "" || len(name) == len(members) || !strings.HasPrefix(name, members)) {
			q.faults.Add(body.Clip(name), "is an unknown query parameter")
		} else if len(values[name]) > 1 {
			q.faults.Add(name, "must appear once")
		}
	}
	return q.err()
}

// err returns nil, or a *body.Error with all faults of the query.
func (q *query) err() error { return q.faults.Err() }

// integer returns the value of a query parameter that must be a number from `low` to `high`. If the parameter is not
// given or is wrong, it returns `absent`.
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

// id returns the value of a query parameter that must be an id, or the empty string if the parameter is not given.
func (q *query) id(name string) string { return q.text(name, bound.ID, bound.MustBeID) }

// name returns the value of a query parameter that must be the id of a tenant or a subject, or the empty string if the
// parameter is not given.
func (q *query) name(name string) string { return q.text(name, bound.Name, bound.MustBeName) }

// requiredID is like id, except that it records a fault if the parameter is not given.
func (q *query) requiredID(name string) string {
	if !q.values.Has(name) {
		q.faults.Add(name, "is required")
	}
	return q.id(name)
}

// instant returns the value of a query parameter that must be a time, or the zero time if the parameter is not given.
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

// requiredInstant is like instant, except that it records a fault if the parameter is not given.
func (q *query) requiredInstant(name string) time.Time {
	if !q.values.Has(name) {
		q.faults.Add(name, "is required")
	}
	return q.instant(name)
}

// word returns the value of a query parameter that must be one of the given words, or the empty string if the
// parameter is not given.
func (q *query) word(name string, words ...string) string {
	value := q.values.Get(name)
	if q.values.Has(name) && !slices.Contains(words, value) {
		q.faults.Add(name, body.OneOf(words...))
	}
	return value
}

// text returns the value of a query parameter, or the empty string if the parameter is not given. If `valid` returns
// false for the value, text records a fault with the message `must`.
func (q *query) text(name string, valid func(string) bool, must string) string {
	value := q.values.Get(name)
	if q.values.Has(name) && !valid(value) {
		q.faults.Add(name, must)
	}
	return value
}

// zone returns the value of a query parameter that must be an IANA zone, or the empty string if the parameter is not
// given.
func (q *query) zone(name string) string { return q.text(name, body.IsZone, body.MustBeZone) }

// route returns the value of a query parameter that must be a route, or the empty string if the parameter is not
// given.
func (q *query) route(name string) string { return q.text(name, bound.Route, bound.MustBeRoute) }

// address returns the value of a query parameter that must be an IP address, or no address if the parameter is not
// given.
func (q *query) address(name string) netip.Addr {
	if !q.values.Has(name) {
		return netip.Addr{}
	}
	address, ok := body.ParseAddress(q.values.Get(name))
	if !ok {
		q.faults.Add(name, body.MustBeAddress)
	}
	return address
}

// page returns the parameters limit and cursor.
func (q *query) page() (limit int, cursor string) {
	limit = int(q.integer("limit", 1, pageMax, pageDefault))
	cursor = q.values.Get("cursor")
	if q.values.Has("cursor") && !bound.ASCII(cursor, '!', 1, cursorMax) {
		q.faults.Add("cursor", mustBeCursor)
	}
	return limit, cursor
}

const mustBeCursor = "is an unknown cursor; it must be the next_cursor of the page before"

// nextCursor returns the cursor of the next page for an answer. It returns nil if cursor is empty, which means that
// there is no next page.
func nextCursor(cursor string) client.NextCursor {
	if cursor == "" {
		return nil
	}
	return &cursor
}

// pageOf is a page of a list, in the form that all lists of the contract have, for example client.MeterList.
type pageOf[A any] struct {
	Items      []A               `json:"items"`
	NextCursor client.NextCursor `json:"next_cursor"`
}

// sendPage answers with a page of a list, or returns err if the list could not be read. translate returns an item in
// the contract's type.
func sendPage[T, A any](rc *request, items []T, cursor string, err error, translate func(*T) A) error {
	if err != nil {
		return err
	}
	return rc.send(http.StatusOK, pageOf[A]{Items: answers.Map(items, translate), NextCursor: nextCursor(cursor)})
}

// listPage answers with the page that the query parameters select from a list of the catalogue.
func listPage[T, A any](
	rc *request, list func(context.Context, listing.Query) (listing.Page[T], error), translate func(*T) A,
) error {
	query, err := rc.catalogPage()
	if err != nil {
		return err
	}
	page, err := list(rc.ctx, query)
	return sendPage(rc, page.Items, page.NextCursor, err, translate)
}
