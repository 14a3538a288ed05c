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

	// ShadowRefusers bounds the limits of an answer. At most 16 limits decide a request, and each route and plan may
	// have other limits.
	ShadowRefusers = 20
)

// ShadowSpan is a named time that ends now.
type ShadowSpan struct {
	Name string
	Back time.Duration // at most KeptFor
}

// ShadowSpans returns the spans that ReadShadow counts, shortest first.
func ShadowSpans() []ShadowSpan {
	return []ShadowSpan{{"hour", time.Hour}, {"day", 24 * time.Hour}, {"week", week}}
}

// ShadowCount counts the decisions of a limit in shadow mode in [From, To), to the minute.
type ShadowCount struct {
	Span     string
	From, To time.Time

	Denies  int64          // granted requests that the limit would have denied
	Tenants int64          // number of the tenants of these requests
	Top     []ShadowTenant // tenants with the most of these requests; at most ShadowTop

	// DeniesRefused counts requests that were refused, but not by a limit, and that this limit would have denied,
	// too.
	DeniesRefused int64

	// Limits are the limits that refused requests about which this limit also decided. There are at most
	// ShadowRefusers, and those with the most refusals are first.
	Limits []ShadowLimit
}

// ShadowTenant is a tenant and the number of its granted requests that the limit would have denied.
type ShadowTenant struct {
	Tenant string
	Denies int64
}

// ShadowLimit is a limit that refused requests. The shadow limit would have denied Denies of these requests and
// passed Passes of them.
type ShadowLimit struct {
	Rule           string
	Denies, Passes int64
}

// ReadShadow returns the counts of a limit in shadow mode for each of ShadowSpans, as a report of r. For an unknown
// limit all counts are zero. Errors are those of reports.
func ReadShadow(ctx context.Context, r *history.Reader, now time.Time, rule string) ([]ShadowCount, error) {
	return history.Report(ctx, r, "", func(ctx context.Context, pool *pgxpool.Pool) (out []ShadowCount, err error) {
		err = pgx.BeginTxFunc(ctx, pool, pgx.TxOptions{AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
			// Connections for reports avoid bitmap scans; these statements read rows of all tenants.
			if _, err := tx.Exec(ctx, "SET LOCAL enable_bitmapscan = on; SET LOCAL enable_hashagg = on; SET LOCAL enable_sort = on; SET LOCAL plan_cache_mode = force_custom_plan"); err != nil {
				return err
			}
			to := now.Add(time.Minute).Truncate(time.Minute).UTC() // including the present minute
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

// read fills c from hourly counts. For the minutes before the first full hour, it reads counts of minutes.
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
