package ledger

import (
	"cmp"
	"slices"
	"time"

	"github.com/quotasvc/quotasvc/internal/kit/errcode"
)

// KeyRetention is the minimum time for which an Idempotency-Key is remembered (API contract).
const KeyRetention = 31 * 24 * time.Hour

// keyMargin widens the range of months in which keys are looked up, because the instant of a decision is known only
// after the look-up.
const keyMargin = 24 * time.Hour

// OperationID is a client's name for an operation: a tenant and an Idempotency-Key. Once a key is no longer remembered,
// it can name another operation, in a later month. The unique name of an operation is (tenant, key, month).
type OperationID struct{ Tenant, Key string }

// Month is a month of the UTC calendar. The journal is partitioned by it. Months count from 0 in January of the year 0.
type Month int32

// MonthOf returns the month of an instant.
func MonthOf(t time.Time) Month {
	t = t.UTC()
	return Month(t.Year()*12 + int(t.Month()) - 1)
}

// First returns the instant at which the month begins.
func (m Month) First() time.Time {
	return time.Date(int(m)/12, time.Month(m%12)+1, 1, 0, 0, 0, 0, time.UTC)
}

// KeyMonths returns the first and the last month in which a key can have been used within KeyRetention before the
// instant `now`, if no clock was ever ahead. With keyMargin at both ends, these are two or three months. Keys in later
// months are remembered as well.
func KeyMonths(now time.Time) (first, last Month) {
	return MonthOf(now.Add(-KeyRetention - keyMargin)), MonthOf(now.Add(keyMargin))
}

// OperationRef names one of the operations that share an id: the newest, or the newest at or before At.
type OperationRef struct {
	OperationID

	At time.Time // zero: the newest
}

// Among selects the entries of the operation that r names, from the entries of all operations with its id. It returns
// them in line order, and no entries if there is no such operation.
func (r OperationRef) Among(entries []Entry) []Entry {
	var out []Entry
	for i := range entries {
		e := &entries[i]
		if !r.At.IsZero() && e.CreatedAt.After(r.At) {
			continue
		}
		if len(out) > 0 {
			newest := MonthOf(out[0].CreatedAt)
			if m := MonthOf(e.CreatedAt); m < newest {
				continue
			} else if m > newest {
				out = out[:0]
			}
		}
		out = append(out, *e)
	}
	slices.SortFunc(out, func(a, b Entry) int { return cmp.Compare(a.Line, b.Line) })
	return out
}

// Remembered selects the entries that are still remembered under a key, from the entries of all operations with that
// key. These are the entries of the newest operation, by line. There are none if its month is before the month `first`.
func Remembered(entries []Entry, first Month) []Entry {
	newest := OperationRef{}.Among(entries)
	if len(newest) == 0 || MonthOf(newest[0].CreatedAt) < first {
		return nil
	}
	return newest
}

// NotFound returns the refusal of a request that names an operation which does not exist.
func (r OperationRef) NotFound() *errcode.Error {
	if r.At.IsZero() {
		return errcode.Errorf(errcode.OperationNotFound, "operation_id", "tenant %q has no operation %q", r.Tenant, r.Key)
	}
	return errcode.Errorf(errcode.OperationNotFound, "operation_id", "tenant %q has no operation %q at or before %s", r.Tenant, r.Key, r.At.UTC().Format(time.RFC3339Nano))
}

// EntryKey names an entry that can be refunded.
type EntryKey struct {
	OperationID

	Month Month
	Line  int32
}

// key returns the name of the entry.
func (e *Entry) key() EntryKey {
	return EntryKey{OperationID{e.Tenant, e.OperationID}, MonthOf(e.CreatedAt), e.Line}
}

// latestMonth returns the month of the newest entry of the batch's balances. It returns 0 if they have no entries.
func (b *Batch) latestMonth() Month {
	var latest Month
	for _, book := range b.Books {
		if !book.UpdatedAt.IsZero() {
			latest = max(latest, MonthOf(book.UpdatedAt))
		}
	}
	return latest
}

// KeysMayLieOutside reports whether remembered keys may have been used before the month `first` or after the month
// `last`. This happens if a clock was ahead when a balance was written. newest is the latest month that holds entries.
func (b *Batch) KeysMayLieOutside(first, last, newest Month) bool {
	oldest, _ := KeyMonths(b.Now)
	return oldest < first || max(newest, b.latestMonth(), MonthOf(b.Now)) > last
}

// Remember removes from Stored all entries that are no longer remembered at the batch's instant.
func (b *Batch) Remember() {
	first, _ := KeyMonths(b.Now)
	for id, entries := range b.Stored {
		if entries = Remembered(entries, first); entries == nil {
			delete(b.Stored, id)
		} else {
			b.Stored[id] = entries
		}
	}
}
