package history

import (
	"cmp"
	"context"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/quotasvc/quotasvc/internal/kit/bound"
	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/kit/period"
	"github.com/quotasvc/quotasvc/internal/ledger"
)

// UsageStep is the width of a usage bucket.
type UsageStep string

// The steps, and for each step the longest time that a query may cover.
const (
	UsageByHour  UsageStep = "hour"
	UsageByDay   UsageStep = "day"
	UsageByMonth UsageStep = "month"

	UsageHoursMax  = 31 * 24 * time.Hour
	UsageDaysMax   = 366 * 24 * time.Hour
	UsageMonthsMax = 10 * 366 * 24 * time.Hour
)

// UsageGroup is the property by which use is divided: the subject, or a dimension.
type UsageGroup string

// UsageBySubject divides the use of the tenant's own balance by the subject in the requests. The empty subject has
// all requests without a subject.
const UsageBySubject UsageGroup = "subject"

// usageByMetadata is the prefix of a group that divides use by a dimension of the meter. A dimension is a member of the
// metadata of requests. The empty value has requests without this member, and refunds.
const usageByMetadata = "metadata."

// UsageByDimension returns the group of a dimension.
func UsageByDimension(name string) UsageGroup { return UsageGroup(usageByMetadata + name) }

// Dimension returns the dimension by which g divides. It returns "" for another group.
func (g UsageGroup) Dimension() string {
	name, _ := strings.CutPrefix(string(g), usageByMetadata)
	if name == string(g) {
		return ""
	}
	return name
}

// UsageValuesMax bounds the values of a dimension that an answer names: the values with the most use. Dimensions are
// meant for few values, such as models or features of a product, not for ids of documents.
const UsageValuesMax = 100

// UsageGroupsMax bounds the buckets of an answer: the number of steps times the number of values of the group.
const UsageGroupsMax = 10_000

// UsageBucket is the use within one step. The largest int64 stands for any larger sum.
type UsageBucket struct {
	Start      time.Time
	Used       int64 // units drawn from grants
	Overage    int64
	Overflow   int64 // units that other meters paid for
	Refunded   int64 // refunded units, including refunded overage
	Operations int64
	Value      string // value of the group; empty: no group, or no value
}

// UsageQuery selects the use of one balance in [From, To).
type UsageQuery struct {
	Tenant, Meter, Subject string
	From, To               time.Time
	Step                   UsageStep
	Zone                   string     // time zone of days and months; empty: UTC
	Group                  UsageGroup // empty: none
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
	named := ask.Group != ""
	if newest == 0 && k.Subject != "" { // no cap per subject: the tenant's own entries have the subjects
		k.Subject, named = "", true
		if newest, err = q.newest(ctx, k); err != nil {
			return nil, err
		}
	}
	s, err := q.between(ctx, k, span{0, newest}, ask.From, ask.To)
	if err != nil {
		return nil, err
	}
	if named {
		paid, err := q.paymentsFor(ctx, k, [2]time.Time{ask.From, ask.To})
		if err != nil {
			return nil, err
		}
		return q.usageNamed(ctx, ask, k, s, paid)
	}
	first, end := wholeQuarters(ask.From, ask.To)
	paid, err := q.paymentsFor(ctx, k, [2]time.Time{ask.From, first}, [2]time.Time{end, ask.To})
	if err != nil {
		return nil, err
	}
	rows, err := q.pool.Query(ctx, q.sql["UsageBetween"], k.Tenant, k.Meter, k.Subject, s.after, s.last, string(ask.Step), ask.Zone,
		ask.From, ask.To, ledger.MonthOf(ask.From).First(), ledger.MonthOf(ask.To).First(), paid.meters, paid.after, paid.last, first, end)
	if err != nil {
		return nil, Failed("sum use", err)
	}
	out := []UsageBucket{}
	var u UsageBucket
	_, err = pgx.ForEachRow(rows, []any{&u.Start, &u.Used, &u.Overage, &u.Overflow, &u.Refunded, &u.Operations}, func() error {
		u.Start = u.Start.UTC()
		out = append(out, u)
		return nil
	})
	if err != nil {
		return nil, Failed("sum use", err)
	}
	return out, nil
}

// usageNamed divides the use of s by the requested group, or returns the use by requests with the requested subject.
func (q *report) usageNamed(ctx context.Context, ask *UsageQuery, k ledger.BalanceKey, s span, paid *payments) ([]UsageBucket, error) {
	args := []any{k.Tenant, k.Meter, k.Subject, s.after, s.last, string(ask.Step), ask.Zone, q.lastMonth(), UsageGroupsMax + 1}
	statement := "UsageBySubject"
	of := ask.Subject // the requested subject; a subject's own balance has no other subjects
	if k.Subject != "" {
		of = ""
	}
	switch dimension := ask.Group.Dimension(); {
	case dimension != "":
		oldest := ledger.MonthOf(ask.From.AddDate(0, -1, 0)).First()
		statement, args = "UsageByDimension", append(args, dimension, of, oldest, UsageValuesMax)
	case ask.Subject != "":
		statement, args = "UsageOfSubject", append(args, ask.Subject)
	}
	args = append(args, paid.meters, paid.after, paid.last)
	rows, _ := q.pool.Query(ctx, q.sql[statement], args...)
	out := []UsageBucket{}
	var u UsageBucket
	_, err := pgx.ForEachRow(rows, []any{&u.Start, &u.Value, &u.Used, &u.Overage, &u.Overflow, &u.Refunded, &u.Operations}, func() error {
		u.Start = u.Start.UTC()
		if ask.Group == "" {
			u.Value = ""
		}
		out = append(out, u)
		return nil
	})
	if err != nil {
		return nil, Failed("sum use by group", err)
	}
	if len(out) > UsageGroupsMax {
		return nil, errcode.Errorf(errcode.InvalidArgument, "to", "gives more than %d items; ask for a shorter time or longer steps", UsageGroupsMax)
	}
	return out, nil
}

func (q *UsageQuery) validate() error {
	if e := ledger.FirstOf(ledger.ValidateName("tenant", q.Tenant), ledger.ValidateID("meter", q.Meter), ledger.ValidateSubject(q.Subject), ledger.ValidateInstant("from", q.From), ledger.ValidateInstant("to", q.To)); e != nil {
		return e
	}
	longest := UsageDaysMax
	switch q.Step {
	case UsageByHour:
		longest = UsageHoursMax
	case UsageByDay:
	case UsageByMonth:
		longest = UsageMonthsMax
	default:
		return errcode.Errorf(errcode.InvalidArgument, "by", "must be one of: hour, day, month")
	}
	if d := q.Group.Dimension(); q.Group != "" && q.Group != UsageBySubject && (d == "" || len(d) > bound.MaxID) {
		return errcode.Errorf(errcode.InvalidArgument, "group_by", "must be subject, or metadata. and a dimension of the meter")
	}
	if q.From.IsZero() || q.To.IsZero() || !q.From.Before(q.To) || q.To.Sub(q.From) > longest {
		return errcode.Errorf(errcode.InvalidArgument, "to", "must be later than from, by at most %d days per %s", int(longest.Hours()/24), q.Step)
	}
	q.Zone = cmp.Or(q.Zone, "UTC")
	if _, err := period.ParseZone(q.Zone); err != nil {
		return errcode.Errorf(errcode.InvalidArgument, "timezone", "%v", err)
	}
	return nil
}
