package verifier

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/quotasvc/quotasvc/internal/ledger/audit"
	"github.com/quotasvc/quotasvc/internal/outbox/events"
)

// driftTextMax bounds the texts of an event in bytes. The verification has the full texts.
const driftTextMax = 300

// all stands for all meters of a tenant in the auditor's differences. No id of a meter contains a star.
const all = "*"

// driftDay is the time in which verifications that were not requested through the API emit the same difference only
// once.
const driftDay = 24 * time.Hour

// drifts returns an event for each balance that differs, with its first difference, in the order of the report.
// tenant is the tenant of the verification, or "" for all tenants. The report lists at most audit.DifferencesMax
// differences, so drifts returns at most as many events. A difference in a meter's sums over all tenants names no
// tenant. A difference in a tenant's holds and refunds names no meter.
func drifts(r *audit.Report, tenant, verification string, at time.Time) (out []events.Event) {
	of := map[audit.Key]int{} // indices in out
	for _, d := range r.Differences {
		key := audit.Key{Tenant: d.Tenant, Meter: d.Meter, Subject: d.Subject}
		if key.Tenant == "" { // a difference over all verified tenants
			key.Tenant = tenant
		}
		if key.Meter == all {
			key.Meter = ""
		}
		if i, seen := of[key]; seen {
			data := out[i].Data.(events.Drift)
			data.Differences++
			out[i].Data = data
			continue
		}
		of[key] = len(out)
		out = append(out, events.Event{
			Type: events.VerifyDrift, At: at, Tenant: key.Tenant, Meter: key.Meter, Subject: key.Subject,
			Data: events.Drift{
				Verification: verification, What: clip(d.What), Journal: clip(d.Want), Stored: clip(d.Got), Differences: 1, Total: r.Count,
			},
		})
	}
	return out
}

func clip(text string) string {
	if len(text) <= driftTextMax {
		return text
	}
	return strings.ToValidUTF8(text[:driftTextMax], "") + "..."
}

// EmitDrift emits events for the differences of a verification that was not requested through the API. For example,
// the watch repeats its verification every hour on each instance. tenant is the verified tenant, or "" for all
// tenants. A balance has at most one event per day (UTC), from the first verification that finds a difference.
func (v *Verifier) EmitDrift(ctx context.Context, tenant string, r *audit.Report) error {
	if len(r.Differences) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	err := pgx.BeginFunc(ctx, v.pool, func(tx pgx.Tx) error {
		var now time.Time
		if err := tx.QueryRow(ctx, v.sql["Now"]).Scan(&now); err != nil {
			return err
		}
		drifted := drifts(r, tenant, "", now)
		day := now.UTC().Truncate(driftDay)
		for i := range drifted {
			drifted[i].Once = &events.Once{Start: day, End: day.Add(driftDay), Mark: "drift"}
		}
		return events.RecordOnce(ctx, tx, drifted)
	})
	if err != nil {
		return fmt.Errorf("tell differences: %w", err)
	}
	return nil
}
