package verifier

import (
	"slices"
	"strings"
	"time"

	"github.com/quotasvc/quotasvc/internal/kit/period"
	"github.com/quotasvc/quotasvc/internal/ledger"
	"github.com/quotasvc/quotasvc/internal/ledger/audit"
)

// termsMargin is the time within which terms are certainly committed after their instant. Entries that are written
// meanwhile know nothing of them. The ledger allows the same time.
const termsMargin = time.Minute

// changes compares what the row of a balance says about changes of terms inside its open period. See change.go of
// package ledger for the rules.
type changes struct {
	*comparison
	*audit.Changes

	open *audit.OpenedPeriod
	kind period.Interval // see kindOf
}

// compareChanges compares the open period of the balance, unless an earlier version opened it.
func (c *comparison) compareChanges() {
	last := len(c.balance.Periods) - 1
	if c.balance.Changes == nil || last < 0 || !c.balance.Periods[last].Open {
		return
	}
	open := &c.balance.Periods[last]
	x := changes{comparison: c, Changes: c.balance.Changes, open: open, kind: c.kindOf(open)}
	x.compareWorth()
	x.compareAmount()
	x.compareCarriedFrom(last)
	x.compareOverageBefore(last)
	x.compareAllowanceAt()
	x.compareTermsAt()
}

// kindOf returns the interval of a period's allowance: period.Once if it is granted once, "" if the plan has no such
// meter.
func (c *comparison) kindOf(p *audit.OpenedPeriod) period.Interval {
	if a := ledger.AllowanceOf(c.key, c.plans, p.Plan, p.PlanVersion); a != nil {
		return a.Every
	}
	return ""
}

// eachTerms calls visit with all terms that the tenant had agreed to before an instant, under every version of their
// plans. It returns true when visit does.
func (c *comparison) eachTerms(before time.Time, visit func(*ledger.TenantTerms, *ledger.Terms) bool) bool {
	for i := range c.history {
		h := &c.history[i]
		if i > 0 && !h.Since.Before(before) {
			break
		}
		for _, v := range c.plans[h.Plan] {
			tl := ledger.NewTimeline(c.key, []ledger.TenantTerms{*h}, map[string][]ledger.PlanVersion{h.Plan: {v}})
			if visit(h, &tl[0]) {
				return true
			}
		}
	}
	return false
}

// compareWorth compares what the allowance is worth with what it gave. Each change of terms changes both by the same
// amount, except for the units that the balance is short of.
func (x *changes) compareWorth() {
	switch {
	case x.kind == "" || !x.Complete:
		return
	case x.Short > 0 && x.Left > 0:
		x.add("units left of an allowance that is short of some", 0, x.Left)
	case x.kind == period.Once && !x.Whole: // it was given in an earlier period
		worth := func(_ *ledger.TenantTerms, t *ledger.Terms) bool {
			return t.Grants && t.Allowance.Amount >= x.Entitled
		}
		if !x.eachTerms(x.open.End, worth) {
			x.add("what the allowance is worth", "at most the amount of a plan", x.Entitled)
		}
		return
	case x.ended():
		return
	}
	if want := x.Given - x.Short + x.Carried; x.Entitled != want {
		x.add("what the allowance is worth", want, x.Entitled)
	}
}

// compareAmount compares what the allowance is worth with the amount of the terms in force. Both are the same unless
// the period is a short one, a change was prorated, or the whole amount did not fit.
func (x *changes) compareAmount() {
	amount, cut := x.open.Allowance, !x.CarriedFrom.IsZero()
	fits := x.open.Raised < ledger.MaxAmount/2 && amount < ledger.MaxAmount/2
	prorated := func(h *ledger.TenantTerms, _ *ledger.Terms) bool {
		return h.Prorate && (cut || h.Since.After(x.open.Start))
	}
	nominal := func(_ *ledger.TenantTerms, t *ledger.Terms) bool {
		p, err := t.Containing(x.open.Start)
		return err == nil && t.Grants && t.Allowance.Every == x.kind &&
			p.Start.Equal(x.open.Start) && p.End.Equal(x.open.End)
	}
	if x.kind == "" || x.Entitled == amount || !fits || x.eachTerms(x.open.End, prorated) {
		return
	}
	if cut || x.eachTerms(x.open.End, nominal) {
		x.add("what the allowance is worth under its terms", amount, x.Entitled)
	}
}

// ended reports whether terms may have taken effect after the allowance ended, before the end of its period. Such terms
// change what it is worth, and give or take nothing.
func (x *changes) ended() bool {
	newest := period.Later(x.UpdatedAt, x.TermsAt)
	if !x.TermsAt.After(x.open.Start) || x.Ends.After(newest) {
		return false
	}
	return x.eachTerms(x.open.End, func(_ *ledger.TenantTerms, t *ledger.Terms) bool {
		return t.Allowance.Lasts > 0 && !x.AllowanceAt.Add(t.Allowance.Lasts).After(newest)
	})
}

// compareCarriedFrom compares the instant since which earlier use counts. Only a change of the interval lets
// earlier use count.
func (x *changes) compareCarriedFrom(last int) {
	if x.CarriedFrom.IsZero() && x.Carried != 0 {
		x.add("earlier use that the allowance is less by", 0, x.Carried)
	}
	from, known := x.countsFrom(last)
	if known && !slices.ContainsFunc(from, x.CarriedFrom.Equal) {
		texts := make([]string, len(from))
		for i, at := range from {
			texts[i] = sinceText(at)
		}
		want := strings.Join(slices.Compact(texts), " or ")
		x.add("beginning of the earlier use that counts", want, sinceText(x.CarriedFrom))
	}
}

func sinceText(at time.Time) string {
	if at.IsZero() {
		return "none counts"
	}
	return instant(at)
}

// countsFrom returns the instants since which earlier use may count in period i. The zero time means that none counts.
// known is false if that follows from periods before a checkpoint.
func (c *comparison) countsFrom(i int) (from []time.Time, known bool) {
	if i == 0 {
		return []time.Time{{}}, c.balance.First
	}
	p, before := &c.balance.Periods[i], &c.balance.Periods[i-1]
	kind := c.kindOf(p)
	switch {
	case kind == c.kindOf(before) || p.Idle > 0:
		return []time.Time{{}}, true
	case kind != "" && kind != period.Once: // since the instant at which a period of the new interval would have begun
		c.eachTerms(p.End, func(_ *ledger.TenantTerms, t *ledger.Terms) bool {
			if t.Grants && t.Allowance.Every == kind {
				if nominal, err := t.Containing(p.Start); err == nil {
					from = append(from, nominal.Start)
				}
			}
			return false
		})
		return from, true
	}
	from, known = c.countsFrom(i - 1) // what counted in the period before counts on
	for j := range from {
		if from[j].IsZero() {
			from[j] = before.Start
		}
	}
	return from, known
}

// compareOverageBefore compares the earlier overage that counts against the cap.
func (x *changes) compareOverageBefore(last int) {
	what := "earlier overage that counts"
	if x.CarriedFrom.IsZero() {
		if x.OverageBefore != 0 {
			x.add(what, 0, x.OverageBefore)
		}
		return
	}
	if x.Past == nil {
		return
	}
	counted := x.Past.Units - x.Past.Paid - x.Past.RefundedBefore
	if x.kind == "" || x.kind == period.Once {
		// The overage of the period before counts on, without what that period paid. Overage that counted in that
		// period counts on as well; no row says how much that was.
		if last == 0 || !x.CarriedFrom.Equal(x.balance.Periods[last-1].Start) {
			return
		}
		if from, known := x.countsFrom(last - 1); !known || !from[0].IsZero() {
			return
		}
		counted = x.balance.Periods[last-1].Overage
	}
	if want := max(0, counted-x.Owing-x.Past.RefundedSince); x.OverageBefore != want {
		x.add(what, want, x.OverageBefore)
	}
}

// compareAllowanceAt compares the instant at which the allowance was given as a whole. That is the beginning of the
// period, or a change of terms. A change that gives no units leaves no entry.
func (x *changes) compareAllowanceAt() {
	start := period.Later(x.GivenAt, x.open.Start)
	switch {
	case x.AllowanceAt.Equal(start):
	case x.AllowanceAt.Before(start), !x.gaveWhole(x.AllowanceAt, x.kind == period.Once):
		x.add("instant at which the allowance was given", instant(start), instant(x.AllowanceAt))
	}
}

// gaveWhole reports whether the allowance was given as a whole by terms that took effect inside the open period, up to
// an instant. If all is true, any terms may do so, as those of another once-only allowance do.
func (x *changes) gaveWhole(at time.Time, all bool) bool {
	return at.Before(x.open.End) && x.eachTerms(x.open.End, func(h *ledger.TenantTerms, _ *ledger.Terms) bool {
		return (all || h.Now && (h.Reset || h.Add)) && !h.Since.After(at) && !h.Since.After(x.TermsAt)
	})
}

// compareTermsAt compares the instant of the newest terms that have taken effect. Terms that give nothing else do not
// move it.
func (x *changes) compareTermsAt() {
	what := "instant of the terms in force"
	agreed := ledger.Agreements(x.history, x.plans)
	begins := func(a ledger.Agreement) bool { return a.Since.Equal(x.TermsAt) }
	if !slices.ContainsFunc(agreed, begins) && !x.isVersion(x.TermsAt) {
		x.add(what, "that of terms", instant(x.TermsAt))
		return
	}
	endless := x.kind == "" || x.kind == period.Once
	for i := range agreed {
		h := &agreed[i]
		due := h.Since.After(x.TermsAt) && h.Since.After(x.open.Start) && h.Since.Before(x.open.End) &&
			h.Since.Add(termsMargin).Before(x.UpdatedAt)
		if due && (h.Now || endless) && (h.Now && (h.Reset || h.Add) || !x.rules(h)) {
			x.add(what, "at least "+instant(h.Since), instant(x.TermsAt))
			return
		}
	}
}

// isVersion reports whether a version of the tenant's plans has the instant.
func (c *comparison) isVersion(at time.Time) bool {
	return c.eachTerms(period.Forever, func(h *ledger.TenantTerms, _ *ledger.Terms) bool {
		return slices.ContainsFunc(c.plans[h.Plan], func(v ledger.PlanVersion) bool { return v.CreatedAt.Equal(at) })
	})
}

// rules reports whether the open period has the plan and the amount of a, or need not have them: a once-only allowance
// stays as it was given if only the version of the plan changes. Versions of older programs wait for the next period.
func (x *changes) rules(a *ledger.Agreement) bool {
	version := !a.Since.Equal(a.AgreedAt)
	waits := a.Version.Apply == ledger.ApplyNextPeriod && x.kind == period.Once
	if version && (waits || a.Version.Apply == ledger.ApplyOpening) {
		return true
	}
	versions := []ledger.PlanVersion{*a.Version}
	if !version { // a newer version may have taken effect since
		versions = x.plans[a.Plan]
	}
	return slices.ContainsFunc(versions, func(v ledger.PlanVersion) bool {
		plans := map[string][]ledger.PlanVersion{a.Plan: {v}}
		t := ledger.NewTimeline(x.key, []ledger.TenantTerms{a.TenantTerms}, plans)[0]
		if !t.Grants {
			return x.open.Plan == ""
		}
		return a.Plan == x.open.Plan && t.Allowance.Amount == x.open.Allowance
	})
}
