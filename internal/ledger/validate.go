package ledger

import (
	"fmt"
	"time"

	"github.com/quotasvc/quotasvc/internal/kit/bound"
	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/kit/period"
)

// The API has already checked requests. The checks here are a second line of defence: a request that violates a
// constraint of a table would fail its whole batch.

func validKey(s string) *errcode.Error { return validKeyIn("Idempotency-Key", s) }

func validKeyIn(field, s string) *errcode.Error {
	if !bound.Key(s) {
		return errcode.Errorf(errcode.InvalidArgument, field, bound.MustBeKey)
	}
	return nil
}

// TextMax bounds the length of free text (reasons and cost bases) in bytes.
const TextMax = 500

// validFreeText refuses text that is longer than TextMax bytes or that PostgreSQL cannot store.
func validFreeText(field, s string) *errcode.Error {
	if len(s) > TextMax || !bound.Storable(s) {
		return errcode.Errorf(errcode.InvalidArgument, field, "must be UTF-8 text of at most %d bytes without NUL", TextMax)
	}
	return nil
}

func validAmount(field string, n int64) *errcode.Error {
	if !bound.Amount(n) {
		return errcode.Errorf(errcode.InvalidArgument, field, bound.MustBeAmount)
	}
	return nil
}

// ValidateID returns nil if s can be the id of an object of the catalogue. Otherwise it returns an error for field.
func ValidateID(field, s string) *errcode.Error {
	if !bound.ID(s) {
		return errcode.Errorf(errcode.InvalidArgument, field, "%s", bound.MustBeID)
	}
	return nil
}

// ValidateName returns nil if s can be the id of a tenant, subject, grant or hold. Otherwise it returns an error for
// field.
func ValidateName(field, s string) *errcode.Error {
	if !bound.Name(s) {
		return errcode.Errorf(errcode.InvalidArgument, field, "%s", bound.MustBeName)
	}
	return nil
}

// ValidateSubject returns nil if s is empty or an id. Otherwise it returns an error.
func ValidateSubject(s string) *errcode.Error {
	if s == "" {
		return nil
	}
	return ValidateName("subject", s)
}

// validSpending checks the fields that debits and holds have in common.
func validSpending(key, tenant, subject string, items []Item) error {
	if e := FirstOf(validKey(key), ValidateName("tenant", tenant), ValidateSubject(subject)); e != nil {
		return e
	}
	return ValidateItems(items)
}

// ValidateItems returns the first fault of items as an *errcode.Error.
func ValidateItems(items []Item) error {
	if len(items) < 1 || len(items) > ItemsMax {
		return errcode.Errorf(errcode.InvalidArgument, "items", "must have 1 to %d elements, has %d", ItemsMax, len(items))
	}
	for i := range items {
		if e := FirstOf(ValidateID(itemField(i, "meter"), items[i].Meter), validAmount(itemField(i, "amount"), items[i].Amount)); e != nil {
			return e
		}
		for j := range i {
			if items[j].Meter == items[i].Meter {
				return errcode.Errorf(errcode.InvalidArgument, itemField(i, "meter"), "duplicate meter, see items[%d]: use one item with the sum", j)
			}
		}
	}
	return nil
}

// ValidateInstant refuses instants that calendars, JSON or PostgreSQL cannot represent. The zero time passes.
func ValidateInstant(field string, t time.Time) *errcode.Error {
	if t.IsZero() {
		return nil
	}
	if t.Before(period.Earliest) || !t.Before(period.Latest) {
		return errcode.Errorf(errcode.InvalidArgument, field, "must lie from %s up to %s", period.Earliest.Format(time.RFC3339), period.Latest.Format(time.RFC3339))
	}
	return nil
}

// FirstOf returns the first error that is not nil, and nil if there is none.
func FirstOf(errs ...*errcode.Error) error {
	for _, e := range errs {
		if e != nil {
			return e
		}
	}
	return nil
}

func itemField(i int, name string) string {
	if i == 0 { // nearly every operation has one item, and builds its field names before any fault is found
		switch name {
		case "meter":
			return "items[0].meter"
		case "amount":
			return "items[0].amount"
		}
	}
	return fmt.Sprintf("items[%d].%s", i, name)
}

func validReason(s string) *errcode.Error {
	if s == "" {
		return errcode.Errorf(errcode.InvalidArgument, "reason", "must have 1 to %d bytes", TextMax)
	}
	return validFreeText("reason", s)
}

func validReturn(p ReturnPolicy) *errcode.Error {
	if p != "" && p != ReturnForfeit && p != ReturnRegrant {
		return errcode.Errorf(errcode.InvalidArgument, "on_expired", "must be forfeit or regrant")
	}
	return nil
}
