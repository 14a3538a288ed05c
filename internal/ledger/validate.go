package ledger

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/quotasvc/quotasvc/internal/bound"
	"github.com/quotasvc/quotasvc/internal/period"
)

// The checks of this file are the second line behind the API's: they keep what a CHECK would refuse, and what would break
// an invariant, out of a batch that serves others too.

func validKey(s string) *Error { return validKeyIn("Idempotency-Key", s) }

func validKeyIn(field, s string) *Error {
	if !bound.Key(s) {
		return errorf(CodeInvalidArgument, field, bound.MustBeKey)
	}
	return nil
}

// TextMax bounds free text: reasons and cost bases.
const TextMax = 500

// validFreeText keeps out what PostgreSQL cannot store.
func validFreeText(field, s string) *Error {
	if len(s) > TextMax || !utf8.ValidString(s) || strings.ContainsRune(s, 0) {
		return errorf(CodeInvalidArgument, field, "must be UTF-8 text of at most %d bytes without NUL", TextMax)
	}
	return nil
}

func validAmount(field string, n int64) *Error {
	if !bound.Amount(n) {
		return errorf(CodeInvalidArgument, field, bound.MustBeAmount)
	}
	return nil
}

// ValidID reports whether s can name a tenant, meter, plan, grant, hold or rule.
func ValidID(s string) bool { return bound.ID(s) }

func validID(field, s string) *Error {
	if !bound.ID(s) {
		return errorf(CodeInvalidArgument, field, bound.MustBeID)
	}
	return nil
}

func validSubject(s string) *Error {
	if s == "" {
		return nil
	}
	return validID("subject", s)
}

func validItems(items []Item) error {
	if len(items) < 1 || len(items) > ItemsMax {
		return errorf(CodeInvalidArgument, "items", "must have 1 to %d elements, has %d", ItemsMax, len(items))
	}
	for i := range items {
		if e := firstOf(validID(itemField(i, "meter"), items[i].Meter), validAmount(itemField(i, "amount"), items[i].Amount)); e != nil {
			return e
		}
		for j := range i {
			if items[j].Meter == items[i].Meter {
				return errorf(CodeInvalidArgument, itemField(i, "meter"), "names the same meter as items[%d]; use one item with the sum", j)
			}
		}
	}
	return nil
}

// validInstant keeps instants where calendars, JSON and PostgreSQL agree.
func validInstant(field string, t time.Time) *Error {
	if t.IsZero() {
		return nil
	}
	if t.Before(period.Earliest) || !t.Before(period.Latest) {
		return errorf(CodeInvalidArgument, field, "must lie from %s up to %s", period.Earliest.Format(time.RFC3339), period.Latest.Format(time.RFC3339))
	}
	return nil
}

// micros cuts an instant to PostgreSQL's resolution.
func micros(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return t.UTC().Truncate(time.Microsecond)
}

func firstOf(errs ...*Error) error {
	for _, e := range errs {
		if e != nil {
			return e
		}
	}
	return nil
}

func itemField(i int, name string) string {
	if i == 0 { // nearly every operation has one item, and names its fields before it knows of a fault
		switch name {
		case "meter":
			return "items[0].meter"
		case "amount":
			return "items[0].amount"
		}
	}
	return fmt.Sprintf("items[%d].%s", i, name)
}
