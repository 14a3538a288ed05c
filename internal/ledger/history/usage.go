package history

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/quotasvc/quotasvc/internal/ledger"
	"github.com/quotasvc/quotasvc/internal/period"
)

// UsageStep is the width of a usage bucket.
type UsageStep string

// The steps, and the longest span of a query with each.
const (
	UsageByHour UsageStep = "hour"
	UsageByDay  UsageStep = "day"

	UsageHoursMax = 31 * 24 * time.Hour
	UsageDaysMax  = 366 * 24 * time.Hour
)

// UsageBucket is the use within one step.
type UsageBucket struct {
	Start      time.Time
	Used       int64 // drawn from grants
	Overage    int64
	Refunded   int64 // of both
	Operations int64
}

// UsageQuery asks for the use of one balance in [From, To).
type UsageQuery struct {
	Tenant, Meter, Subject string
	From, To               time.Time
	Step                   UsageStep
	Zone                   string // time zone of days; empty: UTC
}

// Usage returns the buckets in which there was any use, oldest first.
func (r *Reader) Usage(ctx context.Context, q UsageQuery) ([]UsageBucket, error) {
	if err := q.validate(); err != nil {
		return nil, err
	}
	use, err := reported(ctx, r, func(ctx context.Context, rep *report) ([]UsageBucket, error) {
		if err := r.ledger.MustExist(ctx, q.Tenant); err != nil {
			return nil, err
		}
		return rep.usage(ctx, &q)
	})
	return unlessArchived(ctx, r, q.Tenant, "from", q.From, use, err)
}

func (q *report) usage(ctx context.Context, ask *UsageQuery) ([]UsageBucket, error) {
	k := ledger.BalanceKey{Tenant: ask.Tenant, Meter: ask.Meter, Subject: ask.Subject}
	newest, err := q.newest(ctx, k)
	if err != nil {
		return nil, err
	}
	s, err := q.between(ctx, k, span{0, newest}, ask.From, ask.To)
	if err != nil {
		return nil, err
	}
	rows, err := q.pool.Query(ctx, q.sql["UsageBetween"], k.Tenant, k.Meter, k.Subject, s.after, s.last, string(ask.Step), ask.Zone, q.lastMonth())
	if err != nil {
		return nil, failed("sum use", err)
	}
	out := []UsageBucket{}
	var u UsageBucket
	_, err = pgx.ForEachRow(rows, []any{&u.Start, &u.Used, &u.Overage, &u.Refunded, &u.Operations}, func() error {
		u.Start = u.Start.UTC()
		out = append(out, u)
		return nil
	})
	if err != nil {
		return nil, failed("sum use", err)
	}
	return out, nil
}

func (q *UsageQuery) validate() error {
	if e := ledger.FirstOf(ledger.ValidateID("tenant", q.Tenant), ledger.ValidateID("meter", q.Meter), ledger.ValidateSubject(q.Subject), ledger.ValidateInstant("from", q.From), ledger.ValidateInstant("to", q.To)); e != nil {
		return e
	}
	longest := UsageDaysMax
	switch q.Step {
	case UsageByHour:
		longest = UsageHoursMax
	case UsageByDay:
	default:
		return ledger.Errorf(ledger.CodeInvalidArgument, "by", "must be one of: hour, day")
	}
	if q.From.IsZero() || q.To.IsZero() || !q.From.Before(q.To) || q.To.Sub(q.From) > longest {
		return ledger.Errorf(ledger.CodeInvalidArgument, "to", "must be later than from, by at most %d days per %s", int(longest.Hours()/24), q.Step)
	}
	if q.Zone == "" {
		q.Zone = "UTC"
	}
	if _, err := period.ParseZone(q.Zone); err != nil {
		return ledger.Errorf(ledger.CodeInvalidArgument, "timezone", "%v", err)
	}
	return nil
}
