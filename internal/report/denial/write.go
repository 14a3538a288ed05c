package denial

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// write contains the rows of one transaction. Each field is a column.
type write struct {
	tenant []string
	minute []time.Time
	code   []string
	meter  []string
	rule   []string
	n      []int64

	explained []string
	newest    []time.Time
	items     []string
}

// writeOf returns the rows of some tenants, in the order of the tenants.
func writeOf(tenants []string, of map[string]*noted) (*write, error) {
	w := &write{}
	for _, tenant := range tenants {
		n := of[tenant]
		for _, k := range n.sortedKeys() {
			w.tenant, w.minute = append(w.tenant, tenant), append(w.minute, time.Unix(k.minute*60, 0).UTC())
			w.code, w.meter, w.rule = append(w.code, k.code), append(w.meter, k.meter), append(w.rule, k.rule)
			w.n = append(w.n, n.counts[k])
		}
		if newest := n.newest(tenant); len(newest) > 0 {
			text, err := encode(newest)
			if err != nil {
				return nil, fmt.Errorf("encode denials: %w", err)
			}
			w.explained, w.newest, w.items = append(w.explained, tenant), append(w.newest, newest[0].At), append(w.items, text)
		}
	}
	return w, nil
}

// weeksOf returns the starts of the weeks that contain the minutes.
func weeksOf(minutes []time.Time) []time.Time {
	var out []time.Time
	for _, minute := range minutes {
		if start := weekOf(minute); !slices.ContainsFunc(out, start.Equal) {
			out = append(out, start)
		}
	}
	return out
}

func (w *write) total() (n int64) {
	for _, by := range w.n {
		n += by
	}
	return n
}

func (w *write) dropCounts() {
	w.tenant, w.minute, w.code, w.meter, w.rule, w.n = nil, nil, nil, nil, nil, nil
}

// undone reports whether the error of a COMMIT means that the transaction was not committed and a retry may succeed.
// If it returns false, the outcome is unknown, or the data is faulty.
func undone(err error) bool {
	if _, refused := errors.AsType[*pgconn.PgError](err); refused {
		return !faulty(err)
	}
	return pgconn.SafeToRetry(err)
}

// faulty reports whether the data caused err, so that a retry would fail again.
func faulty(err error) bool {
	e, refused := errors.AsType[*pgconn.PgError](err)
	return refused && (strings.HasPrefix(e.Code, "22") || strings.HasPrefix(e.Code, "23"))
}
