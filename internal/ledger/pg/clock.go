package pg

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5/pgtype"
)

// Ping reads PostgreSQL's clock. It fails if PostgreSQL does not answer.
func (l *Ledger) Ping(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	var now time.Time
	if err := l.readers.QueryRow(ctx, "SELECT clock_timestamp()").Scan(&now); err != nil {
		return unavailable("ask PostgreSQL for the time", err)
	}
	l.observe(now)
	return nil
}

func (l *Ledger) observe(dbNow time.Time) { l.clockOffset.Store(int64(time.Until(dbNow))) }

// estimate returns PostgreSQL's clock as far as it is known.
func (l *Ledger) estimate() time.Time { return time.Now().Add(time.Duration(l.clockOffset.Load())) }

// Now returns PostgreSQL's clock as far as it is known.
func (l *Ledger) Now() time.Time { return l.estimate() }

// keyRetention is how long an Idempotency-Key is remembered at the least (API contract).
const keyRetention = 31 * 24 * time.Hour

// keyMonths lists the partitions in which keys are looked up now. See monthsOfKeys.
func (l *Ledger) keyMonths() []pgtype.Date { return monthsOfKeys(l.estimate()) }

// monthsOfKeys lists the partitions that can hold a key used at most keyRetention before now, with a day of margin for the difference
// between the service's clock and PostgreSQL's.
func monthsOfKeys(now time.Time) []pgtype.Date {
	const margin = 24 * time.Hour
	from, to := now.Add(-keyRetention-margin).UTC(), now.Add(margin).UTC()
	var months []pgtype.Date
	for m := time.Date(from.Year(), from.Month(), 1, 0, 0, 0, 0, time.UTC); !m.After(to); m = m.AddDate(0, 1, 0) {
		months = append(months, pgtype.Date{Time: m, Valid: true})
	}
	return months
}
