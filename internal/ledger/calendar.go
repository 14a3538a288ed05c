package ledger

import (
	"context"
	"time"

	"github.com/quotasvc/quotasvc/internal/period"
)

// PeriodInfo is one period of a balance, open or coming.
type PeriodInfo struct {
	Start, End           time.Time // End zero = no end
	LocalStart, LocalEnd string    // RFC 3339 in the tenant's zone
	Allowance            int64     // what the period brings under the terms known now
}

// PeriodsMax bounds the list of periods.
const PeriodsMax = 100

// Periods returns the open period of a balance and the next-1 that follow under the terms known now.
func (l *Ledger) Periods(ctx context.Context, tenant, meter string, next int) ([]PeriodInfo, error) {
	if next < 1 || next > PeriodsMax {
		return nil, errorf(CodeInvalidArgument, "next", "must be an integer from 1 to %d", PeriodsMax)
	}
	b, _, err := l.viewOne(ctx, tenant, meter, "")
	if err != nil {
		return nil, err
	}
	zone := time.UTC
	if t := b.timeline.at(period.Forever); t != nil && t.zone != nil {
		zone = t.zone
	}
	p, allowance := period.Period{Start: b.start, End: b.end}, b.allowance
	var out []PeriodInfo
	for {
		info := PeriodInfo{Start: p.Start, Allowance: allowance, LocalStart: p.Start.In(zone).Format(time.RFC3339)}
		if !p.Endless() {
			info.End, info.LocalEnd = p.End, p.End.In(zone).Format(time.RFC3339)
		}
		out = append(out, info)
		t := b.timeline.at(p.End)
		if len(out) == next || p.Endless() || t == nil || !p.End.Before(period.Latest) {
			return out, nil
		}
		following, err := t.containing(p.End)
		if err != nil {
			return nil, &Error{Code: CodeInternal, Detail: "the next period cannot be computed", cause: err}
		}
		p, allowance = period.Period{Start: p.End, End: following.End}, 0
		if t.grants {
			allowance = t.allow.amount
		}
	}
}
