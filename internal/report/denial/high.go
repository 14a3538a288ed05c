package denial

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/quotasvc/quotasvc/internal/outbox/events"
)

// high is a limit that has refused at least Config.RejectionsHigh requests of a tenant in a minute.
type high struct {
	tenant, rule string
	minute       time.Time
	count        int64
}

// limited returns the pairs of tenant and minute for which w has refusals by limits, without duplicates.
func (w *write) limited() (tenants []string, minutes []time.Time) {
	for i, rule := range w.rule { // the rows are in the order of tenants and minutes
		if rule == "" || rule == Other {
			continue
		}
		if n := len(tenants); n > 0 && tenants[n-1] == w.tenant[i] && minutes[n-1].Equal(w.minute[i]) {
			continue
		}
		tenants, minutes = append(tenants, w.tenant[i]), append(minutes, w.minute[i])
	}
	return tenants, minutes
}

func scanHigh(row pgx.CollectableRow) (h high, err error) {
	err = row.Scan(&h.tenant, &h.minute, &h.rule, &h.count)
	return h, err
}

// emitHigh emits events about the limits in `found`, in the transaction that has counted the refusals. If it fails, the
// denials are still counted, and the next refusal in the same minute tries again.
func (r *Recorder) emitHigh(ctx context.Context, tx pgx.Tx, found []high) {
	if len(found) == 0 {
		return
	}
	err := pgx.BeginFunc(ctx, tx, func(tx pgx.Tx) error { return events.RecordOnce(ctx, tx, r.highEvents(found)) })
	if err != nil && ctx.Err() == nil {
		r.cfg.Log.Warn("the event for limits that refuse many requests was not stored", "tenant", found[0].tenant, "rule", found[0].rule, "limits", len(found), "error", err)
	}
}

// highEvents returns one event for each tenant, limit and hour in found.
func (r *Recorder) highEvents(found []high) (out []events.Event) {
	type hourOf struct {
		tenant, rule string
		hour         int64
	}
	seen := make(map[hourOf]bool, len(found))
	now := r.cfg.Clock.Now()
	for _, h := range found {
		hour := h.minute.UTC().Truncate(time.Hour)
		of := hourOf{h.tenant, h.rule, hour.Unix()}
		if seen[of] {
			continue
		}
		seen[of] = true
		out = append(out, events.Event{
			Type: events.RejectionsHigh, At: now, Tenant: h.tenant,
			Data: events.Rejections{Rule: h.rule, Minute: h.minute.UTC(), Count: h.count, Threshold: r.cfg.RejectionsHigh},
			Once: &events.Once{Start: hour, End: hour.Add(time.Hour), Mark: fmt.Sprint("rejections:", h.rule)},
		})
	}
	return out
}
