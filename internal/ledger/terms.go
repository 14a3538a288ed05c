package ledger

import (
	"fmt"
	"slices"
	"time"

	"github.com/quotasvc/quotasvc/internal/period"
)

// allowance is what a plan version grants of one meter.
type allowance struct {
	amount int64
	every  period.Interval
	anchor period.AnchorKind
}

// tenantTerms is a row of tenant_terms: what a tenant has agreed to since an instant.
type tenantTerms struct {
	since    time.Time
	plan     string
	anchorAt time.Time
	zone     *time.Location
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

// newTimeline merges a tenant's history with the versions of the plans it names, for one meter. An instant's terms are the
// newest tenant row at or before it, and of that row's plan the newest version at or before it (a plan's first version
// stands in for instants before it).
func newTimeline(meter string, history []tenantTerms, plans map[string][]planVersion) timeline {
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
			allow, ok := versions[j].allowances[meter]
			tl = append(tl, terms{
				since: since, plan: h.plan, version: versions[j].version,
				grants: ok, allow: allow, anchorAt: h.anchorAt, zone: h.zone,
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

// born returns the first terms that have the meter, or the first of all when none has it; nil on an empty timeline.
func (tl timeline) born() *terms {
	for i := range tl {
		if tl[i].grants {
			return &tl[i]
		}
	}
	return tl.at(time.Time{})
}

// endsOpenPeriod returns the first instant after since at which a period without an end, opened for plan with grants as
// given, is over: the plan gains the meter, or another plan applies, or the allowance is no longer a once-only one.
// A period that has an end is never cut short: new terms wait for it.
func (tl timeline) endsOpenPeriod(since time.Time, plan string) (time.Time, bool) {
	for i := range tl {
		t := &tl[i]
		if !t.since.After(since) {
			continue
		}
		gained := plan == "" && t.grants
		changed := plan != "" && (t.plan != plan || !t.grants || t.allow.every != period.Once)
		if gained || changed {
			return t.since, true
		}
	}
	return time.Time{}, false
}
