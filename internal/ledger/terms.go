package ledger

import (
	"fmt"
	"math/bits"
	"reflect"
	"slices"
	"time"

	"github.com/quotasvc/quotasvc/internal/period"
)

// allowance is what a plan version says of one meter. nil pointers mean that it says nothing.
type allowance struct {
	amount         int64
	every          period.Interval
	anchor         period.AnchorKind
	rolloverMin    *int64
	rolloverMax    *int64
	overageAllowed bool
	overageCap     *int64 // nil = no cap
	// overagePreserved leaves overage owed at the period's end, also that of drains where overage is not allowed.
	overagePreserved bool
	overflowMeter    string // '' = none
	overflowPrice    int64
	perSubject       *int64        // what each subject may use of it per period
	lasts            time.Duration // of a once-only allowance, from when it is granted; 0 = for ever
}

// rolls says whether unused units go on into the next period.
func (a *allowance) rolls() bool { return a != nil && (a.rolloverMin != nil || a.rolloverMax != nil) }

// preserves says whether overage is still owed after the period's end.
func (a *allowance) preserves() bool { return a != nil && a.overagePreserved }

// carry returns how much goes on of what is left: left, but at most the maximum and at least the minimum.
func (a *allowance) carry(left int64) int64 {
	if a.rolloverMin != nil {
		left = max(left, *a.rolloverMin)
	}
	if a.rolloverMax != nil {
		left = min(left, *a.rolloverMax)
	}
	return left
}

// ofSubject is the allowance of one subject's own balance.
func (a allowance) ofSubject() (allowance, bool) {
	if a.perSubject == nil {
		return allowance{}, false
	}
	return allowance{amount: *a.perSubject, every: a.every, anchor: a.anchor}, true
}

// tenantTerms is a row of tenant_terms: what a tenant has agreed to since an instant.
type tenantTerms struct {
	since    time.Time
	plan     string
	anchorAt time.Time
	zone     *time.Location
	now      bool // the change ends the open periods that it is about instead of waiting for their end
	prorate  bool // and the period it opens gets its share of the allowance only
	// overrides are amounts of this tenant's own, by meter. They replace the amount of an allowance the plan has.
	overrides map[string]int64
}

// planVersion is one immutable version of a plan.
type planVersion struct {
	version    int32
	createdAt  time.Time
	allowances map[string]allowance // by meter
}

// terms is what holds for one balance from since on.
type terms struct {
	since    time.Time
	plan     string
	version  int32
	grants   bool // the plan has the meter
	allow    allowance
	anchorAt time.Time
	zone     *time.Location
	now      bool
	prorate  bool
}

// schedule is the rhythm of the terms' periods.
func (t *terms) schedule() period.Schedule {
	return period.Schedule{Every: t.allow.every, Anchor: t.allow.anchor, AnchorAt: t.anchorAt, Location: t.zone}
}

// renews says whether the end of a period under these terms brings new units.
func (t *terms) renews() bool {
	return t.grants && t.allow.every != period.Once && t.allow.amount > 0
}

// containing returns the period around at. Without a rhythm it begins at at and has no end.
func (t *terms) containing(at time.Time) (period.Period, error) {
	if !t.grants || t.allow.every == period.Once {
		return period.Period{Start: at, End: period.Forever}, nil
	}
	p, err := t.schedule().Containing(at)
	if err != nil {
		return period.Period{}, fmt.Errorf("period of plan %s version %d at %s: %w", t.plan, t.version, at.Format(time.RFC3339), err)
	}
	return p, nil
}

// timeline lists the terms of one balance, oldest first. The first element also holds for every earlier instant.
type timeline []terms

// newTimeline merges a tenant's history with the versions of the plans it names, for one balance. An instant's terms are the
// newest tenant row at or before it, and of that row's plan the newest version at or before it (a plan's first version
// stands in for instants before it).
func newTimeline(k key, history []tenantTerms, plans map[string][]planVersion) timeline {
	var tl timeline
	for i, h := range history {
		until := period.Forever
		if i+1 < len(history) {
			until = history[i+1].since
		}
		versions := plans[h.plan]
		first := 0
		for j := range versions {
			if !versions[j].createdAt.After(h.since) {
				first = j
			}
		}
		since := h.since
		for j := first; j < len(versions); j++ {
			if j > first {
				since = versions[j].createdAt
			}
			if !since.Before(until) {
				break
			}
			allow, ok := versions[j].allowances[k.Meter]
			if amount, own := h.overrides[k.Meter]; own {
				allow.amount = amount
			}
			if ok && k.Subject != "" {
				allow, ok = allow.ofSubject()
			}
			tl = append(tl, terms{
				since: since, plan: h.plan, version: versions[j].version, grants: ok, allow: allow,
				anchorAt: h.anchorAt, zone: h.zone, now: h.now && j == first, prorate: h.prorate && j == first,
			})
		}
	}
	return tl
}

// at returns the terms in force at t, nil when there are none at all.
func (tl timeline) at(t time.Time) *terms {
	if len(tl) == 0 {
		return nil
	}
	i, found := slices.BinarySearchFunc(tl, t, func(e terms, t time.Time) int { return e.since.Compare(t) })
	if found {
		return &tl[i]
	}
	return &tl[max(0, i-1)]
}

// changes reports whether t says of b's meter something else than what its open period was opened with: another plan, another
// allowance, or another rhythm.
func (tl timeline) changes(b *balance, t *terms) bool {
	if t.grants != (b.plan != "") {
		return true
	}
	if !t.grants {
		return false
	}
	was := tl.at(b.start)
	if t.plan != b.plan || t.allow.amount != b.allowance || !reflect.DeepEqual(t.allow, was.allow) {
		return true
	}
	return t.allow.every != period.Once &&
		(t.zone.String() != was.zone.String() || t.allow.anchor == period.Tenant && !t.anchorAt.Equal(was.anchorAt))
}

// endsPeriod returns the first instant after since at which terms end the period of b before its own end: a change of its terms
// that applies at once; and for a period without an end, when the plan gains the meter, another plan applies, or the allowance
// is no longer a once-only one. All other changes wait for the period's end.
func (tl timeline) endsPeriod(b *balance) (time.Time, bool) {
	for i := range tl {
		t := &tl[i]
		if !t.since.After(b.start) {
			continue
		}
		if !t.since.Before(b.end) {
			break
		}
		endless := !b.end.Before(period.Forever)
		gained := endless && b.plan == "" && t.grants
		changed := endless && b.plan != "" && (t.plan != b.plan || !t.grants || t.allow.every != period.Once)
		if gained || changed || t.now && tl.changes(b, t) {
			return t.since, true
		}
	}
	return time.Time{}, false
}

// allowanceOf returns what a version of a plan says of the balance's meter, nil when it has no such meter. It asks the versions
// themselves, not the timeline: one that was stamped before a tenant's terms and committed after a period was opened under the
// version before it is the only one in the timeline, and the open period keeps what it was opened with.
func allowanceOf(k key, plans map[string][]planVersion, plan string, version int32) *allowance {
	for i := range plans[plan] {
		v := &plans[plan][i]
		if v.version != version {
			continue
		}
		allow, ok := v.allowances[k.Meter]
		if ok && k.Subject != "" {
			allow, ok = allow.ofSubject()
		}
		if ok {
			return &allow
		}
	}
	return nil
}

// amountFrom is the allowance of a period that is opened at at: all of it, or under prorated terms that begin at at, its
// share of the rest of the period, rounded down to whole units.
func (t *terms) amountFrom(at time.Time, p period.Period) int64 {
	if !t.prorate || !t.now || p.Endless() || !at.After(p.Start) || t.since.Before(p.Start) {
		return t.allow.amount
	}
	rest, whole := uint64(p.End.Sub(at).Microseconds()), uint64(p.End.Sub(p.Start).Microseconds())
	hi, lo := bits.Mul64(uint64(t.allow.amount), rest)
	share, _ := bits.Div64(hi, lo, whole)
	return int64(share)
}
