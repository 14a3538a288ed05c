package audit

import (
	"context"
	"fmt"
	"time"
)

// compareCopies compares cached copies with their balances. It reads the copies first, so that none can be newer than its balance
// unless something is wrong. A copy that is older is no difference: it was published a moment ago, or its instance was
// killed before it could publish the next one. Checks limit its age.
func (a *Auditor) compareCopies(ctx context.Context, keys []Key, read CopyReader, r *Report) error {
	copies, err := read(ctx, keys)
	if err != nil {
		return fmt.Errorf("read cached copies: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, chunkTimeout)
	defer cancel()
	var now time.Time
	if err := a.pool.QueryRow(ctx, "SELECT clock_timestamp()").Scan(&now); err != nil {
		return fmt.Errorf("read balances of cached copies: %w", err)
	}
	tenants, meters, subjects := columnsOf(keys)
	rows, err := a.pool.Query(ctx, a.sql["VerifyCopied"], tenants, meters, subjects)
	if err != nil {
		return fmt.Errorf("read balances of cached copies: %w", err)
	}
	balances := map[Key]balance{}
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
		case copied.Seq > b.seq:
			r.add(keys[i], "cached copy's seq", b.seq, copied.Seq)
		case copied.Remaining != b.remaining() && now.Before(copied.ValidUntil):
			r.add(keys[i], "cached copy's remaining", b.remaining(), copied.Remaining)
		}
	}
	return nil
}
