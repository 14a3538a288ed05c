package denial

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/quotasvc/quotasvc/internal/ledger/history"
)

const (
	// ShadowTop is the largest number of tenants in an answer.
	ShadowTop = 10

	// ShadowRefusers is the largest number of limits in an answer. At most 16 limits decide a request, but the routes
	// and plans may have different limits.
	ShadowRefusers = 20
)

// ShadowSpan is a span of time that ends now, with a name.
type ShadowSpan struct {
	Name string
	Back time.Duration // length of the span, at most KeptFor
}

// ShadowSpans returns the spans that ReadShadow counts, the shortest first.
func ShadowSpans() []ShadowSpan {
	return []ShadowSpan{{"hour", time.Hour}, {"day", 24 * time.Hour}, {"week", week}}
}

// ShadowCount counts the decisions of a limit in shadow mode in [From, To). From and To are full minutes.
type ShadowCount struct {
	Span     string
	From, To time.Time

	Denies  int64          // granted requests that the limit would have denied
	Tenants int64          // number of the tenants of these requests
	Top     []ShadowTenant // the tenants with the most such requests; at most ShadowTop

	// DeniesRefused is the number of requests that were refused, but not by a limit, and that this limit would have
	// denied as well.
	DeniesRefused int64

	// Limits are other limits that refused requests. This limit decided about the same requests. The limit with the
	// most refusals is first. There are at most ShadowRefusers.
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

// ReadShadow returns the counts of a limit in shadow mode for each of ShadowSpans. It uses the connections and time
// limits of the reports of r. For an unknown limit all counts are zero. Errors are errors of reports.
func ReadShadow(ctx context.Context, r *history.Reader, now time.Time, rule string) ([]ShadowCount, error) {
	return history.Report(ctx, r, "", func(ctx context.Context, pool *pgxpool.Pool) (out []ShadowCount, err error) {
		err = pgx.BeginTxFunc(ctx, pool, pgx.TxOptions{AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
			// Connections for reports do not use bitmap scans and sorts. These statements need them, because they
			// read rows of all tenants.
			if _, err := tx.Exec(ctx, "SET LOCAL enable_bitmapscan = on; SET LOCAL enable_hashagg = on; SET LOCAL enable_sort = on; SET LOCAL plan_cache_mode = force_custom_plan"); err != nil {
				return err
			}
			to := now.Add(time.Minute).Truncate(time.Minute).UTC() // to include the present minute
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

// read fills c. It reads counts of minutes before the first full hour of the span, and counts of hours from then on.
func (c *ShadowCount) read(ctx context.Context, tx pgx.Tx, rule string) error {
	hours := c.From.Add(time.Hour - 1).Truncate(time.Hour)
	rows, _ := tx.Query(ctx, queries["ShadowSums"], rule, c.From, hours, c.To, ShadowRefusers+2) // 2 more rows: granted requests and Other. An error is also in rows
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
