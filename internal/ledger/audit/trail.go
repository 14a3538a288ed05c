package audit

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
)

// trail is a part of a balance's entries that is hashed again.
type trail struct {
	key   Key
	chain chain // up to the newest entry that was read
	last  int64 // that entry
	until int64 // no later entry is wanted
	fault string

	// marks are the heads that were sealed, oldest first. Each is compared when its entry was read. differ is called with the first that does
	// not agree; later ones differ for the same reason.
	marks    []mark
	differ   func(*trail, *mark)
	reported bool
}

// mark is a head that was sealed.
type mark struct {
	day   time.Time
	chain chain
}

func (t *trail) pending() int64 { return max(t.until-t.last, 0) }

// add takes the next entry.
func (t *trail) add(h *hasher, e *entry) error {
	if t.fault != "" {
		return nil
	}
	if e.seq != t.last+1 {
		t.fault = fmt.Sprintf("entry %d is followed by entry %d", t.last, e.seq)
		return nil
	}
	if err := h.add(&t.chain, t.key, e); err != nil {
		return err
	}
	t.last = e.seq
	t.compare()
	return nil
}

// compare compares the marks that end at the newest entry.
func (t *trail) compare() {
	for len(t.marks) > 0 && t.marks[0].chain.Last == t.last {
		if t.marks[0].chain != t.chain {
			t.differ(t, &t.marks[0])
			t.marks, t.reported = nil, true
			return
		}
		t.marks = t.marks[1:]
	}
}

// readTrails reads the entries of trails that are older than before, in groups that one transaction can read, and returns how many.
func (a *Auditor) readTrails(ctx context.Context, trails []*trail, before time.Time) (entries int64, err error) {
	h := &hasher{}
	trails = slices.DeleteFunc(trails, func(t *trail) bool { return t.pending() == 0 })
	for len(trails) > 0 {
		n, pending := 0, int64(0)
		for n < len(trails) && (n == 0 || pending+trails[n].pending() <= a.RangeEntries) {
			pending += trails[n].pending()
			n++
		}
		for {
			last, read := trails[0].last, int64(0)
			err := a.inSnapshot(ctx, chunkTimeout, func(ctx context.Context, tx pgx.Tx) error {
				var err error
				read, err = a.readTrailsOnce(ctx, tx, h, trails[:n], before)
				return err
			})
			if err != nil {
				return entries, err
			}
			entries += read
			if n > 1 || trails[0].pending() == 0 || trails[0].last == last {
				break
			}
		}
		trails = trails[n:]
	}
	return entries, nil
}

// readTrailsOnce reads at most RangeEntries of each trail.
func (a *Auditor) readTrailsOnce(ctx context.Context, tx pgx.Tx, h *hasher, trails []*trail, before time.Time) (entries int64, err error) {
	keys := make([]Key, len(trails))
	after, until := make([]int64, len(trails)), make([]int64, len(trails))
	for i, t := range trails {
		keys[i], after[i], until[i] = t.key, t.last, min(t.until, t.last+a.RangeEntries)
	}
	tenants, meters, subjects := columnsOf(keys)
	rows, err := tx.Query(ctx, a.sql["VerifyEntries"], tenants, meters, subjects, after, until, before)
	if err != nil {
		return 0, err
	}
	err = eachEntry(rows, func(i int, e *entry) error {
		entries++
		return trails[i].add(h, e)
	})
	return entries, err
}
