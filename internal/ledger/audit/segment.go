package audit

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
)

// segment is a range of a balance's entries that is hashed again.
type segment struct {
	key   Key
	chain chain // up to the newest entry read
	last  int64 // seq of the newest entry read
	until int64 // seq of the last entry to read
	fault string

	// marks are the sealed heads, oldest first. Each mark is compared when its last entry has been read. differ is
	// called with the first mark that does not agree; later marks differ for the same reason.
	marks    []mark
	differ   func(*segment, *mark)
	reported bool
}

// mark is a sealed head.
type mark struct {
	day   time.Time
	chain chain
}

func (t *segment) pending() int64 { return max(t.until-t.last, 0) }

// add hashes the next entry.
func (t *segment) add(h *hasher, e *entry) error {
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

// compare compares the marks that end at the newest entry with the chain of the segment.
func (t *segment) compare() {
	for len(t.marks) > 0 && t.marks[0].chain.Last == t.last {
		if t.marks[0].chain != t.chain {
			t.differ(t, &t.marks[0])
			t.marks, t.reported = nil, true
			return
		}
		t.marks = t.marks[1:]
	}
}

// readSegments reads the entries of segments, except entries at or after the instant `before`. It reads the segments
// in groups, so that one transaction does not read too much. It returns the number of entries.
func (a *Auditor) readSegments(ctx context.Context, segments []*segment, before time.Time) (entries int64, err error) {
	h := &hasher{}
	segments = slices.DeleteFunc(segments, func(t *segment) bool { return t.pending() == 0 })
	for len(segments) > 0 {
		n, pending := 0, int64(0)
		for n < len(segments) && (n == 0 || pending+segments[n].pending() <= a.RangeEntries) {
			pending += segments[n].pending()
			n++
		}
		for {
			last, read := segments[0].last, int64(0)
			err := a.inSnapshot(ctx, chunkTimeout, func(ctx context.Context, tx pgx.Tx) error {
				var err error
				read, err = a.readSegmentsOnce(ctx, tx, h, segments[:n], before)
				return err
			})
			if err != nil {
				return entries, err
			}
			entries += read
			if n > 1 || segments[0].pending() == 0 || segments[0].last == last {
				break
			}
		}
		segments = segments[n:]
	}
	return entries, nil
}

// readSegmentsOnce reads at most RangeEntries of each segment.
func (a *Auditor) readSegmentsOnce(ctx context.Context, tx pgx.Tx, h *hasher, segments []*segment, before time.Time) (entries int64, err error) {
	keys := make([]Key, len(segments))
	after, until := make([]int64, len(segments)), make([]int64, len(segments))
	for i, t := range segments {
		keys[i], after[i], until[i] = t.key, t.last, min(t.until, t.last+a.RangeEntries)
	}
	tenants, meters, subjects := columnsOf(keys)
	rows, err := tx.Query(ctx, a.sql["VerifyEntries"], tenants, meters, subjects, after, until, before)
	if err != nil {
		return 0, err
	}
	err = eachEntry(rows, func(i int, e *entry) error {
		entries++
		return segments[i].add(h, e)
	})
	return entries, err
}
