package denial

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
)

// The time that a row of shadow_counts covers, in minutes.
const (
	everyMinute = 1
	everyHour   = 60
)

// NoteShadow counts the decision of a limit in shadow mode about a request. It does not block. It copies the texts of
// s.
func (r *Recorder) NoteShadow(s *Shadow) {
	if r == nil || !s.Denies && s.RefusedBy == "" { // enforcing this limit would not change the outcome
		return
	}
	if s.At.IsZero() {
		s.At = r.cfg.Clock.Now()
	}
	r.missShadows(r.shadows.note(s))
}

func (r *Recorder) missShadows(lost int64) {
	if lost > 0 {
		r.metrics.shadows.Add(float64(lost))
	}
}

// flushShadows stores the counts of limits in shadow mode. It uses separate transactions, so that an error of
// flushShadows has no effect on flushDenials, and vice versa.
func (r *Recorder) flushShadows(ctx context.Context) error {
	taken := r.shadows.take()
	if len(taken) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, flushTimeout)
	defer cancel()
	for chunk := range slices.Chunk(slices.Sorted(maps.Keys(taken)), chunkTenants) {
		kept, err := r.storeShadows(ctx, shadowRows(chunk, taken))
		for _, tenant := range chunk {
			switch {
			case err == nil:
				delete(taken, tenant)
			case !kept:
				r.missShadows(taken[tenant].total())
				delete(taken, tenant)
			}
		}
		if err != nil {
			r.missShadows(r.shadows.restore(taken))
			return fmt.Errorf("store what shadow limits would have denied: %w", err)
		}
	}
	return nil
}

// storeShadows stores w in one transaction. If it fails, kept reports whether it is certain that nothing was stored
// and that a retry may succeed.
func (r *Recorder) storeShadows(ctx context.Context, w *shadowWrite) (kept bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, chunkTimeout)
	defer cancel()
	conn, err := r.pool.Acquire(ctx)
	if err != nil {
		return true, err
	}
	defer conn.Release()
	add := func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, queries["AddShadows"], w.tenant, w.rule, w.every, w.since, w.refusedBy, w.denies, w.passes)
		return err
	}
	kept, err = send(ctx, conn.Conn(), add)
	if !lacksPartition(err) {
		return kept, err
	}
	if failed := shadowsTable.makeWeeks(ctx, conn.Conn(), weeksOf(w.since), r.cfg.Log); failed != nil {
		r.cfg.Log.Warn("denials of shadow limits are not counted: there is no partition for them: run `quotasvc migrate partitions` as the role that owns the tables", "error", failed)
		r.missShadows(w.total())
		return true, nil
	}
	return send(ctx, conn.Conn(), add)
}

// shadowWrite contains the rows of one transaction. Each field is a column.
type shadowWrite struct {
	tenant, rule, refusedBy []string
	every                   []int16
	since                   []time.Time
	denies, passes          []int64
}

// shadowRows returns the rows of some tenants: each count is in a row of its minute and in a row of its hour.
func shadowRows(tenants []string, of map[string]shadowed) *shadowWrite {
	w := &shadowWrite{}
	for _, tenant := range tenants {
		w.add(tenant, everyMinute, of[tenant])
		hours := shadowed{}
		for k, by := range of[tenant] {
			k.minute -= k.minute % everyHour
			hours[k] = hours[k].plus(by)
		}
		w.add(tenant, everyHour, hours)
	}
	return w
}

func (w *shadowWrite) add(tenant string, every int16, of shadowed) {
	for _, k := range of.sortedKeys() {
		w.tenant, w.rule, w.refusedBy = append(w.tenant, tenant), append(w.rule, k.rule), append(w.refusedBy, k.refusedBy)
		w.every, w.since = append(w.every, every), append(w.since, time.Unix(k.minute*60, 0).UTC())
		w.denies, w.passes = append(w.denies, of[k].denies), append(w.passes, of[k].passes)
	}
}

// total returns the number of requests that w counts.
func (w *shadowWrite) total() (n int64) {
	for i, every := range w.every {
		if every == everyMinute {
			n += w.denies[i] + w.passes[i]
		}
	}
	return n
}
