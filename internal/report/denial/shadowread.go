package denial

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/quotasvc/quotasvc/internal/ledger/history"
)

const (
	// ShadowTop bounds the tenants of an answer.
	ShadowTop = 10

	// ShadowRefusers bounds its limits: at most 16 decide a request, and each route and plan may have others.
	ShadowRefusers = 20
)

// ShadowSpan names a time that is counted, up to now.
type ShadowSpan struct {
	Name string
	Back time.Duration // at most KeptFor
}

// ShadowSpans returns the times that ReadShadow counts, shortest first.
func ShadowSpans() []ShadowSpan {
	return []ShadowSpan{{"hour", time.Hour}, {"day", 24 * time.Hour}, {"week", week}}
}

// ShadowCount is what a limit in shadow mode would have done in [From, To), to the minute.
type ShadowCount struct {
	Span     string
	From, To time.Time

	Denies  int64          // requests that were granted, and that it would have denied
	Tenants int64          // whose they were
	Top     []ShadowTenant // those with the most, at most ShadowTop

	// DeniesRefused are requests that were refused for another reason than a limit, and that it would have denied as well.
	DeniesRefused int64

	// Limits are those that refused requests that it decided as well, at most ShadowRefusers, those that refused the most first.
	Limits []ShadowLimit
}

// ShadowTenant is a tenant, and how many of its granted requests the limit would have denied.
type ShadowTenant struct {
	Tenant string
	Denies int64
}

// ShadowLimit is a limit that refused requests: of these the shadow limit would have denied Denies, and let pass Passes.
type ShadowLimit struct {
	Rule           string
	Denies, Passes int64
}

// ReadShadow returns what a limit in shadow mode would have done in each of ShadowSpans, as a report of r. A limit that nothing is known of has counts of
// zero. Errors are those of reports.
func ReadShadow(ctx context.Context, r *history.Reader, now time.Time, rule string) ([]ShadowCount, error) {
	return history.Report(ctx, r, "", func(ctx context.Context, pool *pgxpool.Pool) (out []ShadowCount, err error) {
		err = pgx.BeginTxFunc(ctx, pool, pgx.TxOptions{AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
			// Reports look things up; these statements add up all tenants.
			if _, err := tx.Exec(ctx, "SET LOCAL enable_bitmapscan = on; SET LOCAL enable_hashagg = on; SET LOCAL enable_sort = on; SET LOCAL plan_cache_mode = force_custom_plan"); err != nil {
				return err
			}
			to := now.Add(time.Minute).Truncate(time.Minute).UTC() // the present minute, too
			for _, span := range ShadowSpans() {
				c := ShadowCount{Span: span.Name, From: to.Add(-span.Back), To: to}
				if err := c.read(ctx, tx, rule); err != nil {
					return err
				}
				out = append(out, c)
			}
			return nil
		})
		if err != nil {
			return nil, history.Failed("count what a shadow limit would have denied", err)
		}
		return out, nil
	})
}

// read fills c from the hours of its time, and from the minutes before the first of these.
func (c *ShadowCount) read(ctx context.Context, tx pgx.Tx, rule string) error {
	hours := c.From.Add(time.Hour - 1).Truncate(time.Hour)
	rows, _ := tx.Query(ctx, queries["ShadowSums"], rule, c.From, hours, c.To, ShadowRefusers+2) // granted and Other have rows as well; its error is that of the rows
	var l ShadowLimit
	var tenants int64
	_, err := pgx.ForEachRow(rows, []any{&l.Rule, &l.Denies, &l.Passes, &tenants}, func() error {
		switch {
		case l.Rule == "":
			c.Denies, c.Tenants = l.Denies, tenants
		case l.Rule == Other:
			c.DeniesRefused = l.Denies
		case len(c.Limits) < ShadowRefusers:
			c.Limits = append(c.Limits, l)
		}
		return nil
	})
	if err != nil || c.Denies == 0 {
		return err
	}
	rows, _ = tx.Query(ctx, queries["ShadowTop"], rule, c.From, hours, c.To, ShadowTop)
	c.Top, err = pgx.CollectRows(rows, pgx.RowToStructByPos[ShadowTenant])
	return err
}
