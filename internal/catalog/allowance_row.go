package catalog

import "github.com/quotasvc/quotasvc/internal/period"

// allowanceRow is an allowance as its table has it: flat, with null for what is absent.
type allowanceRow struct {
	meter                    string
	amount                   int64
	every, anchor            string
	rolloverMin, rolloverMax *int64
	overagePolicy            *string
	overageCap               *int64
	overageAtEnd             *string
	overflowMeter            *string
	overflowPrice            *int64
	perSubject               *int64
	expiresInDays            *int64
}

func rowOf(a *Allowance) allowanceRow {
	r := allowanceRow{
		meter: a.Meter, amount: a.Amount, every: string(a.Every), anchor: string(a.Anchor), perSubject: a.PerSubject,
		expiresInDays: a.ExpiresInDays,
	}
	if a.Rollover != nil {
		r.rolloverMin, r.rolloverMax = &a.Rollover.Min, &a.Rollover.Max
	}
	if a.Overage != nil {
		r.overagePolicy, r.overageCap = &a.Overage.Policy, a.Overage.Cap
		if a.Overage.AtPeriodEnd != "" {
			r.overageAtEnd = &a.Overage.AtPeriodEnd
		}
	}
	if a.Overflow != nil {
		r.overflowMeter, r.overflowPrice = &a.Overflow.Meter, &a.Overflow.Price
	}
	return r
}

func (r *allowanceRow) allowance() Allowance {
	a := Allowance{
		Meter: r.meter, Amount: r.amount, Every: period.Interval(r.every), Anchor: period.AnchorKind(r.anchor), PerSubject: r.perSubject,
		ExpiresInDays: r.expiresInDays,
	}
	if r.rolloverMax != nil {
		a.Rollover = &Rollover{Max: *r.rolloverMax}
		if r.rolloverMin != nil {
			a.Rollover.Min = *r.rolloverMin
		}
	}
	if r.overagePolicy != nil {
		a.Overage = &Overage{Policy: *r.overagePolicy, Cap: r.overageCap}
		if r.overageAtEnd != nil {
			a.Overage.AtPeriodEnd = *r.overageAtEnd
		}
	}
	if r.overflowMeter != nil && r.overflowPrice != nil {
		a.Overflow = &Overflow{Meter: *r.overflowMeter, Price: *r.overflowPrice}
	}
	return a
}
