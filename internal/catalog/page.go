package catalog

import (
	"encoding/base64"
	"fmt"
	"math"

	"github.com/quotasvc/quotasvc/internal/catalog/check"
	"github.com/quotasvc/quotasvc/internal/kit/bound"
)

// MaxPage bounds a page of a listing, as in the REST contract.
const MaxPage = 500

const unlimited = math.MaxInt32 // the LIMIT of a statement that selects all rows

// mustBeCursor is the sentence for a cursor that this package did not make.
const mustBeCursor = "is an unknown cursor; it must be the next_cursor of the page before"

// Page selects a part of a listing.
type Page struct {
	Limit  int    // 1..MaxPage
	Cursor string // empty for the first page, then the NextCursor of the page before
	Prefix string // only tenants whose ids begin with it; other listings ignore it
	Tenant string // only what is about this tenant: itself, or blocks of it and of its subjects; empty: all
}

// List is a page of a listing, in order of ids.
type List[T any] struct {
	Items      []T
	NextCursor string // empty on the last page
}

// After returns the id after which the page begins. It fails with CodeInvalidArgument for a limit or a cursor that no page has.
func (p Page) After() (string, error) {
	var c check.Checker
	c.Require(p.Limit >= 1 && p.Limit <= MaxPage, "limit", "must be an integer from 1 to %d", MaxPage)
	id, err := base64.RawURLEncoding.DecodeString(p.Cursor)
	c.Require(err == nil && (len(id) == 0 || bound.ID(string(id))), "cursor", mustBeCursor)
	return string(id), invalid(c.Faults)
}

// Listed returns a page of items. The caller has read one item more than the page holds.
func Listed[T any](items []T, p Page, id func(*T) string) List[T] {
	if len(items) <= p.Limit {
		return List[T]{Items: items}
	}
	items = items[:p.Limit]
	return List[T]{Items: items, NextCursor: base64.RawURLEncoding.EncodeToString([]byte(id(&items[p.Limit-1])))}
}

func wrap(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}
