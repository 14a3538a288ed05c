package ledger

import (
	"errors"
	"time"

	"github.com/quotasvc/quotasvc/internal/kit/errcode"
)

// NothingDone is the end of the error detail of an operation that was refused before its decision. This attempt did
// nothing, but an earlier attempt with the same key may have ended as errcode.OutcomeUnknown.
const NothingDone = "this attempt did nothing; an earlier attempt with the same key may have been carried out"

// Oldest is the oldest instant that can be queried. It is the data of an error with errcode.Archived.
type Oldest time.Time

// Archived returns an error with errcode.Archived: the request field named field refers to a time before oldest.
func Archived(field string, oldest time.Time) *errcode.Error {
	e := errcode.Errorf(errcode.Archived, field, "the oldest instant for queries is %s", oldest.UTC().Format(time.RFC3339))
	e.Data = Oldest(oldest)
	return e
}

// OldestOf returns the oldest instant that can be queried, from an error that Archived made. It returns the zero time
// for other errors.
func OldestOf(err error) time.Time {
	if e, ok := errors.AsType[*errcode.Error](err); ok {
		oldest, _ := e.Data.(Oldest)
		return time.Time(oldest)
	}
	return time.Time{}
}

// inItem changes an error of the field meter into an error of item i of the request. A nil error stays nil.
func inItem(e *errcode.Error, i int) *errcode.Error {
	if e != nil && e.Field() == "meter" {
		e.Fields[0].Field = itemField(i, "meter")
	}
	return e
}

func suspended(tenant string) *errcode.Error {
	return errcode.Errorf(errcode.TenantSuspended, "tenant", "tenant %q is suspended", tenant)
}
