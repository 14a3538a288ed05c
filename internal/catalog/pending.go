package catalog

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/quotasvc/quotasvc/internal/catalog/feature"
	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/kit/period"
)

// CodeChangePending is the code of the error for a change that would wait although another change of the tenant waits.
const CodeChangePending errcode.Code = "change_pending"

// MaxAhead is the longest time by which EffectiveAt of a patch may lie in the future: a year and a month. A change
// that is farther away is probably a mistake in the year.
const MaxAhead = 400 * 24 * time.Hour

// Pending is a change of a tenant's terms that waits for its instant. Its fields are the whole terms from then on. They
// follow a change that applies before then, except in the members that the request of the pending change named.
type Pending struct {
	From      time.Time        `json:"from"`
	Plan      string           `json:"plan"`
	Anchor    time.Time        `json:"anchor"`
	Timezone  string           `json:"timezone"`
	Overrides map[string]int64 `json:"overrides,omitempty"`
	Features  feature.Set      `json:"features,omitempty"`
	Apply     string           `json:"apply"` // applyNextPeriod or applyAt
	Prorate   bool             `json:"prorate,omitzero"`
	Usage     string           `json:"usage"`
	Reason    string           `json:"reason,omitzero"`

	asked askedTerms
}

// askedTerms are the members of terms that a request named: the part of a TenantPatch that can wait.
type askedTerms struct {
	Plan      *string                   `json:"plan,omitzero"`
	Anchor    *time.Time                `json:"anchor,omitzero"`
	Timezone  *string                   `json:"timezone,omitzero"`
	Overrides map[string]*int64         `json:"overrides,omitzero"`
	Features  map[string]*feature.Value `json:"features,omitzero"`
	Removed   []string                  `json:"removed,omitzero"` // see TenantPatch.Removed
}

// termMembers are the members of a tenant that are terms, except the plan, which cannot be removed.
var termMembers = []string{"anchor", "timezone", "overrides", "features"}

// asked returns the members of terms that p names.
func (p *TenantPatch) asked() askedTerms {
	removed := slices.DeleteFunc(
		slices.Clone(p.Removed),
		func(f string) bool { return !slices.Contains(termMembers, f) },
	)
	return askedTerms{
		Plan: p.Plan, Anchor: p.Anchor, Timezone: p.Timezone,
		Overrides: p.Overrides, Features: p.Features, Removed: removed,
	}
}

// changesTo returns the members of terms in which `after` differs from t.
func (t *Tenant) changesTo(after *Tenant) askedTerms {
	a := askedTerms{
		Overrides: changesOf(t.Overrides, after.Overrides), Features: changesOf(t.Features, after.Features),
	}
	if t.Plan != after.Plan {
		a.Plan = &after.Plan
	}
	if !t.Anchor.Equal(after.Anchor) {
		a.Anchor = &after.Anchor
	}
	if t.Timezone != after.Timezone {
		a.Timezone = &after.Timezone
	}
	return a
}

// changesOf returns the changes that turn `before` into `after`: see check.Patched.
func changesOf[M ~map[string]V, V comparable](before, after M) map[string]*V {
	changes := map[string]*V{}
	for name := range before {
		if _, stays := after[name]; !stays {
			changes[name] = nil
		}
	}
	for name, v := range after {
		if old, had := before[name]; !had || old != v {
			changes[name] = &v
		}
	}
	return changes
}

// onlyOverrides returns the meters whose overrides change if nothing but overrides changes, else nil.
func (a *askedTerms) onlyOverrides(before *Tenant) []string {
	if a.Plan != nil || a.Anchor != nil || a.Timezone != nil || len(a.Features) > 0 {
		return nil
	}
	meters := slices.Collect(maps.Keys(a.Overrides))
	for _, member := range a.Removed {
		if member != "overrides" {
			return nil
		}
		meters = slices.AppendSeq(meters, maps.Keys(before.Overrides))
	}
	return meters
}

// on returns t with the members that a names.
func (a *askedTerms) on(t Tenant) Tenant {
	return t.patched(&TenantPatch{
		Plan: a.Plan, Anchor: a.Anchor, Timezone: a.Timezone,
		Overrides: a.Overrides, Features: a.Features, Removed: a.Removed,
	})
}

// follow returns the pending change after a change of the terms before it: what its request named stays, all other
// members are those of t.
func (p *Pending) follow(t *Tenant) *Pending {
	if p == nil {
		return nil
	}
	then := p.asked.on(*t)
	return p.withTerms(&then)
}

// withTerms returns p with the terms of t.
func (p *Pending) withTerms(t *Tenant) *Pending {
	next := *p
	next.Plan, next.Anchor, next.Timezone = t.Plan, t.Anchor, t.Timezone
	next.Overrides, next.Features = t.Overrides, t.Features
	return &next
}

// terms returns a tenant that has only the terms of p.
func (p *Pending) terms() *Tenant {
	return &Tenant{Plan: p.Plan, Anchor: p.Anchor, Timezone: p.Timezone, Overrides: p.Overrides, Features: p.Features}
}

// same reports whether p and o are equal. Both may be nil.
func (p *Pending) same(o *Pending) bool {
	if p == nil || o == nil {
		return p == o
	}
	return p.From.Equal(o.From) && p.terms().sameTerms(o.terms()) && maps.Equal(p.Features, o.Features)
}

// withTerms returns t with the terms of o: plan, anchor, zone, overrides and features.
func (t Tenant) withTerms(o *Tenant) Tenant {
	t.Plan, t.Anchor, t.Timezone, t.Overrides, t.Features = o.Plan, o.Anchor, o.Timezone, o.Overrides, o.Features
	return t
}

// advance puts the pending change of t into force if its instant has come. It reports whether it did. This is the only
// place where the stored row of a tenant and its pending terms become the tenant that is in force: the row may not have
// been written since.
func (t *Tenant) advance(now time.Time) bool {
	if t.Pending == nil || t.Pending.From.After(now) {
		return false
	}
	*t = t.agreed()
	t.Version++
	if t.UpdatedAt.Before(t.Pending.From) {
		t.UpdatedAt = t.Pending.From
	}
	t.Pending = nil
	return true
}

// agreed returns t with the terms that it will have after its pending change, if it has one.
func (t Tenant) agreed() Tenant {
	if t.Pending == nil {
		return t
	}
	return t.withTerms(t.Pending.terms())
}

// nextFacts are the facts of a tenant that a pending change alters at its instant.
type nextFacts struct {
	from           time.Time
	plan, timezone string
	version        int32 // of the plan
	features       feature.Set
}

// at returns the facts that are in force at the instant now. It is the counterpart of Tenant.advance for tenants in
// memory. So a change takes effect at its instant on every instance, even if PostgreSQL is away.
func (f TenantFacts) at(now func() time.Time) TenantFacts {
	if f.next == nil && f.versions == nil {
		return f
	}
	at := now()
	if f.next != nil && !f.next.from.After(at) {
		f.Plan, f.Timezone, f.Features = f.next.plan, f.next.timezone, f.next.features
		f.PlanVersion = f.next.version
		if f.UpdatedAt.Before(f.next.from) {
			f.UpdatedAt = f.next.from
		}
		f.next = nil
	}
	for _, v := range f.versions {
		if !v.from.After(at) {
			f.PlanVersion, f.PlanSince = v.version, v.from
		}
	}
	return f
}

// Waits reports whether a change of the tenant's terms waits.
func (f *TenantFacts) Waits() bool { return f.next != nil }

// waitsFor returns the allowances of p for whose open periods a change waits: those of the given meters, or else those
// with the longest interval. An allowance without an interval is never among them.
func (p *Plan) waitsFor(meters []string) []*Allowance {
	longest := period.Once
	var list []*Allowance
	for i := range p.Allowances {
		a := &p.Allowances[i]
		switch {
		case !a.Every.Longer(period.Once) || meters != nil && !slices.Contains(meters, a.Meter):
			continue
		case meters == nil && a.Every.Longer(longest):
			list, longest = nil, a.Every
		case meters == nil && longest.Longer(a.Every):
			continue
		}
		list = append(list, a)
	}
	return list
}

// nominalEnd returns the end of the period that contains now by the schedule of an allowance.
func (t *Tenant) nominalEnd(a *Allowance, now time.Time) (time.Time, error) {
	zone, err := period.ParseZone(t.Timezone)
	if err != nil {
		return time.Time{}, err
	}
	s := period.Schedule{Every: a.Every, Anchor: a.Anchor, AnchorAt: t.Anchor, Location: zone}
	p, err := s.Containing(now)
	return p.End, err
}

// pendingRow are the nullable columns of terms that wait.
type pendingRow struct {
	from, anchor                        *time.Time
	plan, zone, apply, usage, whyChange *string
	overrides                           map[string]int64
	features                            feature.Set
	prorate                             *bool
	asked                               *askedTerms
	version                             *int32 // the newest of the plan; only for facts
}

// into returns the places for the columns, in the order of the statements.
func (r *pendingRow) into() []any {
	return []any{
		&r.from, &r.plan, &r.anchor, &r.zone, &r.overrides, &r.features,
		&r.apply, &r.prorate, &r.usage, &r.whyChange, &r.asked,
	}
}

// pending returns the change in r, or nil if no change waits. own are the tenant's present features, which stay if the
// terms do not name features.
func (r *pendingRow) pending(own feature.Set) *Pending {
	if r.from == nil {
		return nil
	}
	p := &Pending{
		From: r.from.UTC(), Plan: *r.plan, Anchor: r.anchor.UTC(), Timezone: *r.zone,
		Overrides: r.overrides, Features: r.features,
		Prorate: *r.prorate, Usage: *r.usage,
	}
	if p.Apply = applyNextPeriod; r.apply != nil {
		p.Apply = *r.apply
	}
	if r.features == nil {
		p.Features = own
	}
	if r.whyChange != nil {
		p.Reason = *r.whyChange
	}
	if r.asked != nil {
		p.asked = *r.asked
	}
	if len(p.Overrides) == 0 {
		p.Overrides = nil
	}
	if len(p.Features) == 0 {
		p.Features = nil
	}
	return p
}

// next returns the facts that the terms in r alter, or nil if no change waits.
func (r *pendingRow) next(own feature.Set) *nextFacts {
	if r.from == nil {
		return nil
	}
	next := &nextFacts{from: r.from.UTC(), plan: *r.plan, timezone: *r.zone, version: *r.version, features: r.features}
	if r.features == nil {
		next.features = own
	}
	if len(next.features) == 0 {
		next.features = nil
	}
	return next
}

// timing says when changed terms take effect, and why they change.
type timing struct {
	apply   string     // applyNow, applyNextPeriod or applyAt
	at      time.Time  // for applyAt
	prorate bool       // see TenantPatch.Prorate
	usage   string     // usageCarry, usageReset or usageAdd
	reason  string     // empty: not given
	dry     bool       // the transaction is rolled back
	patch   bool       // a patch changes some fields; a put replaces all
	terms   bool       // the request names terms or use: without terms, own features change at once
	asked   askedTerms // the terms that the request names
}

// putTiming returns the timing of a put that turns `before` into t.
func putTiming(before, t *Tenant) timing {
	return timing{
		apply: applyNextPeriod, usage: usageCarry, terms: !t.sameTerms(before), asked: before.changesTo(t),
	}
}

// renews reports whether the change gives allowances anew, even if no member of the terms changes.
func (w *timing) renews() bool { return w.usage == usageReset || w.usage == usageAdd }

// action returns the name of the change of the tenant for the audit log.
func (w *timing) action() string {
	if w.patch {
		return "patch"
	}
	return "put"
}

// pendingOn returns the pending change of the tenant `before` that w asks for, from an instant on.
func (w *timing) pendingOn(before *Tenant, from time.Time) *Pending {
	p := &Pending{
		From:    from,
		Apply:   w.apply,
		Prorate: w.prorate,
		Usage:   cmp.Or(w.usage, usageCarry),
		Reason:  w.reason,
		asked:   w.asked,
	}
	return p.follow(before)
}
