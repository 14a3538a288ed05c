package history

import (
	"context"
	"time"

	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/kit/period"
	"github.com/quotasvc/quotasvc/internal/ledger"
)

// PeriodInfo is the open period of a balance, or a later period.
type PeriodInfo struct {
	Start, End           time.Time // End zero: no end
	LocalStart, LocalEnd string    // RFC 3339 in the tenant's zone
	Allowance            int64     // allowance of the period under the present terms
}

// PeriodsMax bounds the list of periods.
const PeriodsMax = 100

// Periods returns the open period of a balance and the next-1 periods that follow it under the present terms.
func (r *Reader) Periods(ctx context.Context, tenant, meter string, next int) ([]PeriodInfo, error) {
	if next < 1 || next > PeriodsMax {
		return nil, errcode.Errorf(errcode.InvalidArgument, "next", "must be an integer from 1 to %d", PeriodsMax)
	}
	b, _, err := r.ledger.View(ctx, ledger.BalanceKey{Tenant: tenant, Meter: meter}, time.Time{})
	if err != nil {
		return nil, err
	}
	zone := time.UTC
	if t := b.Timeline.At(period.Forever); t != nil && t.Zone != nil {
		zone = t.Zone
	}
	p, allowance := period.Period{Start: b.Start, End: b.End}, b.Allowance
	var out []PeriodInfo
	for {
		info := PeriodInfo{Start: p.Start, Allowance: allowance, LocalStart: p.Start.In(zone).Format(time.RFC3339)}
		if !p.Endless() {
			info.End, info.LocalEnd = p.End, p.End.In(zone).Format(time.RFC3339)
		}
		out = append(out, info)
		t := b.Timeline.At(p.End)
		if len(out) == next || p.Endless() || t == nil || !p.End.Before(period.Latest) {
			return out, nil
		}
		following, err := t.Containing(p.End)
		if err != nil {
			return nil, &errcode.Error{Code: errcode.Internal, Detail: "the next period cannot be computed", Cause: err}
		}
		p, allowance = period.Period{Start: p.End, End: following.End}, 0
		if t.Grants {
			allowance = t.Allowance.Amount
		}
	}
}
