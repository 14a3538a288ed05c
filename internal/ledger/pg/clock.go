package pg

import (
	"context"
	"time"
)

// Ping reads PostgreSQL's clock. It fails if PostgreSQL does not answer.
func (l *Ledger) Ping(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	var now time.Time
	if err := l.probe.QueryRow(ctx, "SELECT clock_timestamp()").Scan(&now); err != nil {
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
