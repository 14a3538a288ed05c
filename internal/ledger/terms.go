package ledger

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/quotasvc/quotasvc/internal/kit/period"
	"github.com/quotasvc/quotasvc/internal/kit/price"
)

// Allowance is what a plan version grants of one meter. A nil pointer means that the plan does not set the value.
type Allowance struct {
	Amount         int64
	Every          period.Interval
	Anchor         period.AnchorKind
	RolloverMin    *int64
	RolloverMax    *int64
	OverageAllowed bool
	OverageCap     *int64 // nil: no cap
	// OveragePreserved means that overage is still owed after the end of the period. This includes the overage of
	// drains under a plan that does not allow overage.
	OveragePreserved bool
	OverflowMeter    string // empty: none
	OverflowPrice    price.Ratio
	PerSubject       *int64        // units of the allowance that each subject may use per period; nil: no cap
	Lasts            time.Duration // how long a once-only allowance lasts after it was granted; 0: for ever
	AlertAt          *[]int16      // percentages of use that emit events; nil: the default. Amounts do not depend on it
}

// rolls reports whether unused units are carried into the next period.
func (a *Allowance) rolls() bool { return a != nil && (a.RolloverMin != nil || a.RolloverMax != nil) }

// preserves reports whether overage is still owed after the end of the period.
func (a *Allowance) preserves() bool { return a != nil && a.OveragePreserved }

// carry returns the number of units that are carried over: left, raised to the minimum, and then limited to the
// maximum.
func (a *Allowance) carry(left int64) int64 {
	if a.RolloverMin != nil {
		left = max(left, *a.RolloverMin)
	}
	if a.RolloverMax != nil {
		left = min(left, *a.RolloverMax)
	}
	return left
}

// ofSubject returns the allowance of a subject's balance, and false if the plan does not cap subjects.
func (a Allowance) ofSubject() (Allowance, bool) {
	if a.PerSubject == nil {
		return Allowance{}, false
	}
	return Allowance{Amount: *a.PerSubject, Every: a.Every, Anchor: a.Anchor, AlertAt: a.AlertAt}, true
}

// TenantTerms is a row of tenant_terms: what a tenant has agreed to, from an instant on.
type TenantTerms struct {
	Since    time.Time
	Plan     string
	AnchorAt time.Time
	Zone     *time.Location
	Now      bool // the terms change open periods; other terms wait for the ends of the periods
	Prorate  bool // with Now: each amount of an allowance counts for the time in which it is in force
	Reset    bool // with Now: the whole allowance is given anew, and the rest of the old one expires
	Add      bool // with Now: the whole allowance is given anew, and the rest of the old one stays until it ends
	// Overrides are amounts by meter for this tenant alone. Each amount replaces the amount of the plan's allowance.
	Overrides map[string]int64
}

// Terms are the conditions that apply to one balance from the instant `since` on.
type Terms struct {
	since     time.Time
	agreedAt  time.Time // TenantTerms.Since
	plan      string
	version   int32
	made      time.Time // when the version was made; zero: it waits for the next period of each balance
	Grants    bool      // the plan has the meter
	Allowance Allowance
	anchorAt  time.Time
	Zone      *time.Location
	now       bool
	prorate   bool
	reset     bool
	add       bool
	waited    bool // a version of the plan that waited for the end of the billing period
	granted   bool // earlier terms have granted the once-only allowance of this plan
}

// once reports whether the terms have no schedule: the plan lacks the meter, or grants its allowance once.
func (t *Terms) once() bool { return !t.Grants || t.Allowance.Every == period.Once }

// schedule returns the schedule of the terms' periods.
func (t *Terms) schedule() period.Schedule {
	return period.Schedule{Every: t.Allowance.Every, Anchor: t.Allowance.Anchor, AnchorAt: t.anchorAt, Location: t.Zone}
}

// renews reports whether the end of a period under these terms brings new units.
func (t *Terms) renews() bool {
	return !t.once() && t.Allowance.Amount > 0
}

// Containing returns the period that contains the instant `at`. An allowance without a schedule has a period that
// begins at that instant and has no end.
func (t *Terms) Containing(at time.Time) (period.Period, error) {
	if t.once() {
		return period.Period{Start: at, End: period.Forever}, nil
	}
	p, err := t.schedule().Containing(at)
	if err != nil {
		return period.Period{}, fmt.Errorf("period of plan %s version %d at %s: %w", t.plan, t.version, at.Format(time.RFC3339), err)
	}
	return p, nil
}

// Timeline lists the terms of one balance, oldest first. The first element also applies to every earlier instant.
type Timeline []Terms

// NewTimeline returns the terms of one balance: those of the tenant's agreements (see Agreements).
func NewTimeline(k BalanceKey, history []TenantTerms, plans map[string][]PlanVersion) Timeline {
	list := Agreements(history, plans)
	tl := make(Timeline, len(list))
	for i := range list {
		a := &list[i]
		t := termsOf(k, &a.TenantTerms, a.Version)
		t.agreedAt, t.now = a.AgreedAt, a.Now
		t.prorate = a.Now && a.Prorate
		t.waited = a.Version.Apply == ApplyNextPeriod && !a.Since.Equal(a.AgreedAt)
		if a.Now && (i == 0 || a.concerns(&list[i-1].TenantTerms, k.Meter)) {
			t.reset, t.add = a.Reset, a.Add
		}
		tl[i] = t
	}
	tl.markGranted()
	return tl
}

// concerns reports whether h gives the allowance of a meter anew if it gives allowances anew. A change that names other
// meters only does not.
func (h *TenantTerms) concerns(before *TenantTerms, meter string) bool {
	if h.Plan != before.Plan || maps.Equal(h.Overrides, before.Overrides) {
		return true
	}
	own, has := h.Overrides[meter]
	was, had := before.Overrides[meter]
	return has != had || own != was
}

// termsOf returns the terms that h and version v of its plan define. It does not set now, prorate, reset, add and
// granted.
func termsOf(k BalanceKey, h *TenantTerms, v *PlanVersion) Terms {
	allow, ok := v.Allowances[k.Meter]
	if amount, own := h.Overrides[k.Meter]; own {
		allow.Amount = amount
	}
	if ok && k.Subject != "" {
		allow, ok = allow.ofSubject()
	}
	made := v.CreatedAt
	if v.Apply == ApplyOpening {
		made = time.Time{}
	}
	return Terms{
		since: h.Since, agreedAt: h.Since, plan: h.Plan, version: v.Version, made: made,
		Grants: ok, Allowance: allow, anchorAt: h.AnchorAt, Zone: h.Zone,
	}
}

// markGranted marks the terms whose once-only allowance was granted before. Such an allowance is granted only once
// for each plan. Terms under which no period began have granted nothing.
func (tl Timeline) markGranted() {
	gifts := 0
	for i := range tl {
		if tl[i].grantsOnce() {
			gifts++
		}
	}
	if gifts < 2 {
		return
	}
	seen := map[string]bool{}
	tl.eachOpening(func(t *Terms, _, _ time.Time) {
		if t.grantsOnce() {
			t.granted, seen[t.plan] = seen[t.plan], true
		}
	})
}

// grantsOnce reports whether the terms have a once-only allowance.
func (t *Terms) grantsOnce() bool { return t.Grants && t.once() && t.Allowance.Amount > 0 }

// eachOpening calls visit for all terms under which a period begins or that change an open period, oldest first. The
// terms take effect at the instant `at`. The period that is open then began at the instant began.
func (tl Timeline) eachOpening(visit func(t *Terms, at, began time.Time)) {
	var open *Terms          // terms of the open period
	var began, end time.Time // its beginning, at the latest, and its end; a zero end is not computed
	for i := range tl {
		t, until := &tl[i], period.Forever
		if i+1 < len(tl) {
			until = tl[i+1].since
		}
		changes := open == nil || t.actsOn(open.kind())
		if open != nil && !open.once() && end.Before(t.since) { // the open period and all periods before it began under earlier terms
			p, err := open.Containing(t.since)
			if end = p.End; err != nil || p.Start.Equal(t.since) {
				end = t.since
			}
			began = period.Later(began, p.Start)
		}
		turns := open == nil || t.kind() != open.kind()
		opens := turns || !open.once() && end.Before(until)
		if !changes && (open.once() || !end.Before(until)) {
			continue
		}
		at := end
		if changes {
			at = t.since
		}
		visit(t, at, began)
		switch {
		case open != nil && turns:
			began, end = at, time.Time{}
		case opens: // the first period may have begun before its terms
			began, end = end, time.Time{}
		}
		open = t
	}
}

// fate says what became of an allowance.
type fate int

const (
	untouched fate = iota // it ends at its own end
	kept                  // a change let it stay beside a new allowance: no later change touches it
	ended                 // a reset or a change of the interval ended it
)

// fateOf returns what the first change after an allowance took effect made of it. Changes after those of the instant
// `acted` are to come.
func (tl Timeline) fateOf(g *OpenGrant, acted time.Time) (f fate) {
	var open *Terms
	tl.eachOpening(func(t *Terms, at, began time.Time) {
		before := open
		if open = t; before == nil || f != untouched || !at.After(g.EffectiveAt) || t.since.After(acted) {
			return
		}
		switch {
		case g.once():
			if t.kind() == period.Once && t.reset && t.plan == tl.At(g.EffectiveAt).plan {
				f = ended
			}
		case t.add && g.EffectiveAt.Before(began): // its period had ended
		case t.add:
			f = kept
		case t.reset, t.kind() != before.kind():
			f = ended
		}
	})
	return f
}

// apart returns the times in which allowances took effect whose use reduces no other allowance: of once-only allowances,
// and of those that a change let stay beside a new one. Changes after those of the instant `acted` are to come.
func (tl Timeline) apart(acted time.Time) (from, until []time.Time) {
	var open *Terms
	begin := time.Time{}
	tl.eachOpening(func(t *Terms, at, began time.Time) {
		if open != nil && t.since.After(acted) {
			return
		}
		if before := open; before != nil && (t.add || t.reset || t.kind() != before.kind()) {
			if t.add || before.once() {
				if !before.once() {
					begin = period.Later(begin, began)
				}
				from, until = append(from, begin), append(until, at)
			}
			begin = at
		}
		open = t
	})
	if open != nil && open.once() {
		from, until = append(from, begin), append(until, period.Forever)
	}
	return from, until
}

// At returns the terms in force at t, nil if the timeline is empty.
func (tl Timeline) At(t time.Time) *Terms {
	if len(tl) == 0 {
		return nil
	}
	i, found := slices.BinarySearchFunc(tl, t, func(e Terms, t time.Time) int { return e.since.Compare(t) })
	if found {
		return &tl[i]
	}
	return &tl[max(0, i-1)]
}

// opened reports whether the open period of b was opened with the plan and the allowance of t.
func (t *Terms) opened(b *BalanceRow) bool {
	if !t.Grants {
		return b.Plan == ""
	}
	return t.plan == b.Plan && t.Allowance.Amount == b.Allowance
}

// AllowanceOf returns the allowance of a plan version for a balance, nil when that version lacks the meter. It looks
// at the versions, not at the timeline. A version may have an instant before the tenant's terms and still be
// committed after a period was opened under an older version. The timeline then has only the new version, but the
// open period keeps the old version.
func AllowanceOf(k BalanceKey, plans map[string][]PlanVersion, plan string, version int32) *Allowance {
	for i := range plans[plan] {
		v := &plans[plan][i]
		if v.Version != version {
			continue
		}
		allow, ok := v.Allowances[k.Meter]
		if ok && k.Subject != "" {
			allow, ok = allow.ofSubject()
		}
		if ok {
			return &allow
		}
	}
	return nil
}

// share returns the part of amount for a period that is opened at the given instant. Normally this is the whole
// amount. Under prorated terms that begin within the period, it is proportional to the rest of the period, rounded
// down to whole units.
func (t *Terms) share(amount int64, at time.Time, p period.Period) int64 {
	if !t.prorate || !t.now || p.Endless() || !at.After(p.Start) || t.since.Before(p.Start) {
		return amount
	}
	return part(amount, p.End.Sub(at), p.End.Sub(p.Start))
}
