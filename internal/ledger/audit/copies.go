package audit

import (
	"context"
	"errors"
	"fmt"
)

// ErrCopiesUnread means that the cache did not answer, so its copies could not be compared.
var ErrCopiesUnread = errors.New("the cached copies of balances cannot be read")

// compareCopies compares cached copies with their balances. It reads the copies first, so a copy that is newer than its
// balance is a difference. An older copy is not a difference: it was published a moment ago, or its instance was killed
// before it could publish the next copy. Checks do not use copies above a maximum age. If something was due but not yet
// written when a copy was made, the copy is no difference: the read for the copy derived the entries in memory. Other
// entries may have been written first since then. An event that is due shows in the balance's row, but new terms that
// apply at once do not, so such a copy says itself that it was derived. A copy must agree with the balance only if it
// was not derived, was made before the stored next event, and names that event.
func (a *Auditor) compareCopies(ctx context.Context, keys []Key, read CopyReader, r *Report) error {
	copies, err := read(ctx, keys)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrCopiesUnread, err)
	}
	ctx, cancel := context.WithTimeout(ctx, chunkTimeout)
	defer cancel()
	tenants, meters, subjects := columnsOf(keys)
	rows, err := a.pool.Query(ctx, a.sql["VerifyCopied"], tenants, meters, subjects)
	if err != nil {
		return fmt.Errorf("read balances of cached copies: %w", err)
	}
	balances := map[Key]*balance{}
	if err := scanBalances(rows, balances); err != nil {
		return fmt.Errorf("read balances of cached copies: %w", err)
	}
	for i, copied := range copies {
		b, stored := balances[keys[i]]
		if copied == nil || !stored {
			continue
		}
		r.Copies++
		switch {
		case copied.Seq < b.seq:
			r.StaleCopies++
		case copied.Derived, !copied.AsOf.Before(b.nextEvent):
			r.StaleCopies++
		case copied.Seq > b.seq:
			r.add(keys[i], "cached copy's seq", b.seq, copied.Seq)
		case !copied.ValidUntil.Equal(b.nextEvent):
			r.StaleCopies++ // the terms have changed since the copy was made
		case copied.Remaining != b.remaining():
			r.add(keys[i], "cached copy's remaining", b.remaining(), copied.Remaining)
		}
	}
	return nil
}
