package pg

import (
	"context"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/quotasvc/quotasvc/internal/kit/clock"
)

// clockInterval is how often an idle instance compares its clock with PostgreSQL's, for the metric and the log. Each
// decision compares the clocks itself.
const clockInterval = 5 * time.Second

// NewClock returns a clock for Config. The clock logs a line when PostgreSQL's clock and the instance's clock begin or
// cease to agree. skewMax is as in clock.Config.
func NewClock(skewMax time.Duration, log *slog.Logger) *clock.Clock {
	return clock.New(clock.Config{SkewMax: skewMax, Changed: func(agree bool, skew time.Duration) {
		if agree {
			log.Info("the clocks agree again", "skew_seconds", skew.Seconds())
			return
		}
		log.Error("the clocks of PostgreSQL and of this instance differ: no period closes and nothing expires by the later one; see docs/operations/database.md, clocks",
			"skew_seconds", skew.Seconds())
	}})
}

// asker is a connection, a transaction or a pool.
type asker interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// askTime reads PostgreSQL's clock, and returns the instant that decisions use.
func (l *Ledger) askTime(ctx context.Context, of asker) (time.Time, error) {
	began := l.clock.Begin()
	var now time.Time
	if err := of.QueryRow(ctx, "SELECT clock_timestamp()").Scan(&now); err != nil {
		return time.Time{}, err
	}
	return l.clock.Agree(began, now), nil
}

// Ping reads PostgreSQL's clock. It fails if PostgreSQL does not answer.
func (l *Ledger) Ping(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	if _, err := l.askTime(ctx, l.probe); err != nil {
		return unavailable("ask PostgreSQL for the time", err)
	}
	return nil
}

// Now returns the instant that decisions use, as far as it is known without a query.
func (l *Ledger) Now() time.Time { return l.clock.Now() }
