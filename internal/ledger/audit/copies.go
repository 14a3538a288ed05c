package audit

import (
	"context"
	"errors"
	"fmt"
)

// ErrCopiesUnread means that the cache did not answer, so nothing is known of its copies.
var ErrCopiesUnread = errors.New("the cached copies of balances cannot be read")

// compareCopies compares cached copies with their balances. It reads the copies first, so that none can be newer than its balance
// unless something is wrong. A copy that is older is no difference: it was published a moment ago, or its instance was
// killed before it could publish the next one. Checks limit its age. Nor is one that was made when something was due that is not written yet: a read
// works that off in memory. Only a copy that was made before the stored next event, and names it, says what the balance says.
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
		case !copied.AsOf.Before(b.nextEvent):
			r.StaleCopies++ // something was due and is not written yet: the copy's reader worked it off in memory
		case copied.Seq > b.seq:
			r.add(keys[i], "cached copy's seq", b.seq, copied.Seq)
		case !copied.ValidUntil.Equal(b.nextEvent):
			r.StaleCopies++ // the terms have changed since
		case copied.Remaining != b.remaining():
			r.add(keys[i], "cached copy's remaining", b.remaining(), copied.Remaining)
		}
	}
	return nil
}
