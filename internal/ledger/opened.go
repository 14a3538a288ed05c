package ledger

import (
	"time"

	"github.com/quotasvc/quotasvc/internal/kit/period"
)

// Opened is what terms give a period that they open.
type Opened struct {
	Allowance int64
	Renews    bool
	End       time.Time // the end of the period, unless new terms end it before
	GrantEnd  time.Time // the end of its allowance
}

// OpenedBy returns what a period of k may have been opened with, if it begins at the instant start and its row names
// this version of a plan (an empty plan: the plan has no such meter). It considers all terms that the tenant had agreed
// to by then, not only those in force: terms may have been committed after the period was opened. It returns nothing
// if the tenant never agreed to the plan, or if that version does not exist or does not have the meter.
func OpenedBy(
	k BalanceKey, history []TenantTerms, plans map[string][]PlanVersion, start time.Time, plan string, version int32,
) []Opened {
	var out []Opened
	for i := range history {
		h := &history[i]
		if i > 0 && h.Since.After(start) {
			break
		}
		if plan != "" && plan != h.Plan {
			continue
		}
		for j := range plans[h.Plan] {
			v := &plans[h.Plan][j]
			t := termsOf(k, h, v)
			if t.Grants != (plan != "") || t.Grants && v.Version != version || !t.Grants && version != 0 {
				continue
			}
			p, err := t.Containing(start)
			if err != nil {
				continue
			}
			of := Opened{End: p.End, GrantEnd: p.End}
			if t.Grants {
				of.Allowance, of.Renews = t.Allowance.Amount, t.renews()
			}
			if t.Allowance.Lasts > 0 {
				of.GrantEnd = period.Earlier(p.End, start.Add(t.Allowance.Lasts))
			}
			out = append(out, of)
			if !t.Grants {
				return out
			}
		}
	}
	return out
}
