package listing

import (
	"encoding/base64"

	"github.com/quotasvc/quotasvc/internal/kit/body"
	"github.com/quotasvc/quotasvc/internal/kit/bound"
	"github.com/quotasvc/quotasvc/internal/kit/errcode"
)

// Max bounds the objects of a page, as in the REST contract.
const Max = 500

// MustBeCursor is the error text for a cursor that is not the NextCursor of a page.
const MustBeCursor = "is an unknown cursor; it must be the next_cursor of the page before"

// Query selects a part of a listing.
type Query struct {
	Limit  int    // 1..Max
	Cursor string // empty for the first page, otherwise the NextCursor of the page before
	Prefix string // only tenants whose ids begin with Prefix; lists of other objects ignore Prefix
	Tenant string // only objects of this tenant and of its subjects, for example blocks; empty: objects of all tenants
}

// Page is one page of a listing. Its items are in the order of their ids.
type Page[T any] struct {
	Items      []T
	NextCursor string // empty on the last page
}

// After returns the id after which the page begins. It fails with errcode.InvalidArgument if the limit is not from 1
// to Max, or if the cursor is not the NextCursor of a page.
func (q Query) After() (string, error) {
	var faults body.Faults
	if q.Limit < 1 || q.Limit > Max {
		faults.Add("limit", bound.MustBeInteger(1, Max))
	}
	id, err := base64.RawURLEncoding.DecodeString(q.Cursor)
	if err != nil || len(id) > 0 && !bound.Name(string(id)) {
		faults.Add("cursor", MustBeCursor)
	}
	if faults != nil {
		return "", errcode.Invalid(faults...)
	}
	return string(id), nil
}

// Cut returns a page with the first q.Limit items. The caller must read one item more than q.Limit: if that item
// exists, there is a next page.
func Cut[T any](items []T, q Query, id func(*T) string) Page[T] {
	if len(items) <= q.Limit {
		return Page[T]{Items: items}
	}
	items = items[:q.Limit]
	last := id(&items[q.Limit-1])
	return Page[T]{Items: items, NextCursor: base64.RawURLEncoding.EncodeToString([]byte(last))}
}
