package ledger

import (
	"time"

	"github.com/quotasvc/quotasvc/internal/kit/period"
)

// Opened is what terms give a period that they open.
type Opened struct {
	Named     bool // by the version of the plan that the row names
	Allowance int64
	Renews    bool
	End       time.Time // the end of the period, unless new terms end it before
	GrantEnd  time.Time // the end of its allowance
	Lasts     time.Duration
}

// OpenedBy returns what a period of k may have been opened with, if it begins at the instant start. Named are those
// under this version of a plan (an empty plan: the plan has no such meter). It considers all terms that the tenant had
// agreed to before the instant until, the end of the period: terms may change an open period. None is named if
// the tenant never agreed to the plan, or if that version does not exist or does not have the meter.
func OpenedBy(
	k BalanceKey, history []TenantTerms, plans map[string][]PlanVersion, start, until time.Time, plan string,
	version int32,
) []Opened {
	var out []Opened
	for i := range history {
		h := &history[i]
		if i > 0 && !h.Since.Before(until) {
			break
		}
		for j := range plans[h.Plan] {
			v := &plans[h.Plan][j]
			t := termsOf(k, h, v)
			p, err := t.Containing(start)
			if err != nil {
				continue
			}
			of := Opened{End: p.End, GrantEnd: p.End, Lasts: t.Allowance.Lasts}
			of.Named = !t.Grants && plan == "" && version == 0
			if t.Grants {
				of.Named = plan == h.Plan && v.Version == version
				of.Allowance, of.Renews = t.Allowance.Amount, t.renews()
			}
			if t.Allowance.Lasts > 0 {
				of.GrantEnd = period.Earlier(p.End, start.Add(t.Allowance.Lasts))
			}
			out = append(out, of)
		}
	}
	return out
}
