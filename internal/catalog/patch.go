package catalog

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/quotasvc/quotasvc/internal/catalog/check"
	"github.com/quotasvc/quotasvc/internal/catalog/feature"
	"github.com/quotasvc/quotasvc/internal/kit/body"
	"github.com/quotasvc/quotasvc/internal/kit/errcode"
)

// MaxReason is the longest reason, in bytes, as in the ledger.
const MaxReason = 500

// TenantPatch is a change of a tenant. Fields that are nil stay unchanged.
type TenantPatch struct {
	Plan     *string         `json:"plan,omitzero"`
	Anchor   *time.Time      `json:"anchor,omitzero"`
	Timezone *string         `json:"timezone,omitzero"`
	Status   *string         `json:"status,omitzero"`
	Metadata json.RawMessage `json:"metadata,omitzero"` // replaces the whole stored object; nil: no change

	// Overrides maps meters to their new amounts. The amount nil removes an override. The overrides of other meters
	// stay.
	Overrides map[string]*int64 `json:"overrides,omitzero"`

	// Features maps features to their new values. The value nil removes the tenant's own value. The change takes
	// effect with the other terms of the patch. Features alone take effect at once, unless Apply or EffectiveAt say
	// when.
	Features map[string]*feature.Value `json:"features,omitzero"`

	// Apply says when new terms take effect: now, or at the end of the billing period. Empty: applyNextPeriod, or
	// applyAt if EffectiveAt is set. A change that applies now leaves a pending change: see Pending.
	Apply string `json:"apply,omitzero"`
	// EffectiveAt is the instant at which new terms take effect, at most MaxAhead in the future. It must not be set
	// with applyNow. nil: Apply decides.
	EffectiveAt *time.Time `json:"effective_at,omitzero"`
	// Prorate says whether an open allowance that the change alters gets each amount only for its share of the period.
	Prorate bool `json:"prorate,omitzero"`
	// Usage says what happens to the use of the open allowances. usageCarry deducts this use from the new amounts.
	// usageReset gives whole allowances and requires a Reason. usageAdd does so and keeps the rest of the old
	// allowances until the period ends. Empty: usageCarry.
	Usage string `json:"usage,omitzero"`

	Reason string `json:"reason,omitzero"` // why terms or status change, 1..MaxReason bytes; empty: not given
	// Removed has the names of fields that were null: see Remove.
	Removed []string `json:"-"`

	Key       string `json:"-"`                // the Idempotency-Key; empty: a retry is another request
	IfVersion *int64 `json:"-"`                // errcode.Conflict if the tenant has another version; nil: any version
	DryRun    bool   `json:"dry_run,omitzero"` // return the tenant as the patch would change it, and change nothing
}

// Values of TenantPatch.Apply: when a change of terms takes effect. A request does not name applyAt: it sets EffectiveAt.
const (
	applyNow        = "now"
	applyNextPeriod = "next_period"
	applyAt         = "effective_at"
)

// Values of TenantPatch.Usage: what happens to the use of the periods that a change of terms ends.
const (
	usageCarry = "carry"
	usageReset = "reset"
	usageAdd   = "add"
)

// TenantChange is a tenant before and after a patch. For a dry run, the field After is the tenant that the patch would
// store.
type TenantChange struct {
	Before, After                 Tenant
	BeforeVersions, AfterVersions TenantVersions

	// Apply, Prorate and Usage say how the patch changes terms, as in Terms, with the defaults. Apply and Usage are
	// empty if the patch changes no terms. Apply is applyNow for a change that had nothing to wait for.
	Apply   string
	Prorate bool
	Usage   string

	Replayed bool // an earlier request with the same key made the change
}

// Remove implements body.Patch. A zone, an anchor, metadata, overrides and features that are removed are those of a
// tenant that was created without them. A plan and a status cannot be removed and stay; the other fields say how to
// change the tenant, and are absent.
func (p *TenantPatch) Remove(field string) {
	if field == "metadata" || slices.Contains(termMembers, field) {
		p.Removed = append(p.Removed, field)
	}
}

func (p *TenantPatch) removes(fields ...string) bool {
	return slices.ContainsFunc(fields, func(f string) bool { return slices.Contains(p.Removed, f) })
}

// Check returns all faults of p that can be found without the tenant.
func (p *TenantPatch) Check(given body.Given) []body.Fault {
	c := check.Checker{Given: given}
	if p.Plan != nil {
		c.ID("plan", *p.Plan)
	}
	if p.Anchor != nil {
		c.Instant("anchor", *p.Anchor)
	}
	if p.Timezone != nil {
		c.Zone("timezone", *p.Timezone)
	}
	if p.Status != nil {
		c.OneOf("status", *p.Status, StatusActive, StatusSuspended)
	}
	if p.Metadata != nil {
		c.Metadata(p.Metadata)
	}
	p.checkApply(&c)
	checkOverrides(&c, p.Overrides)
	feature.Check(&c, "features", p.Features)
	return c.Faults
}

func (p *TenantPatch) checkApply(c *check.Checker) {
	if c.Has("apply", p.Apply != "") {
		c.OneOf("apply", p.Apply, applyNow, applyNextPeriod)
	}
	instant := p.Apply == applyNow || p.EffectiveAt != nil
	if p.EffectiveAt != nil {
		c.Instant("effective_at", *p.EffectiveAt)
		c.Require(p.Apply != applyNow, "effective_at", "must not be given with apply now")
	}
	c.Require(!p.Prorate || instant, "prorate", "requires apply now or effective_at")
	if c.Has("usage", p.Usage != "") {
		c.OneOf("usage", p.Usage, usageCarry, usageReset, usageAdd)
		c.Require(instant, "usage", "requires apply now or effective_at")
		c.Require(p.Usage != usageReset || p.Reason != "", "reason", "is required with usage reset")
	}
	terms := p.changesTerms()
	const needs = "requires plan, anchor, timezone, overrides, features, or usage reset or add"
	c.Require(p.Apply == "" || terms, "apply", needs)
	c.Require(p.EffectiveAt == nil || terms, "effective_at", needs)
	if c.Has("reason", p.Reason != "") {
		c.Require(terms || p.Status != nil, "reason", "requires plan, anchor, timezone, overrides or status")
		c.Text("reason", p.Reason, 1, MaxReason)
	}
}

// namesTerms reports whether p sets a part of the terms: plan, anchor, zone or overrides.
func (p *TenantPatch) namesTerms() bool {
	return p.Plan != nil || p.Anchor != nil || p.Timezone != nil || len(p.Overrides) > 0 ||
		p.removes("anchor", "timezone", "overrides")
}

// changesTerms reports whether p changes terms at an instant that Apply or EffectiveAt say or leave to the default. New
// features alone are no such change: they take effect at once, unless p says when.
func (p *TenantPatch) changesTerms() bool {
	features := (len(p.Features) > 0 || p.removes("features")) && (p.Apply != "" || p.EffectiveAt != nil)
	return p.namesTerms() || features || p.Usage == usageReset || p.Usage == usageAdd
}

// change returns the TenantChange of p, without Before and After.
func (p *TenantPatch) change() TenantChange {
	if !p.changesTerms() {
		return TenantChange{}
	}
	when := p.timing()
	return TenantChange{Apply: when.apply, Prorate: when.prorate, Usage: when.usage}
}

// timing returns when the change of terms takes effect, and its reason.
func (p *TenantPatch) timing() timing {
	when := timing{
		apply: cmp.Or(p.Apply, applyNextPeriod), prorate: p.Prorate, usage: cmp.Or(p.Usage, usageCarry), reason: p.Reason,
		dry: p.DryRun, patch: true, terms: p.changesTerms(), asked: p.asked(),
	}
	if p.EffectiveAt != nil {
		when.apply, when.at = applyAt, *p.EffectiveAt
	}
	return when
}

// patched returns t after the changes of p.
func (t Tenant) patched(p *TenantPatch) Tenant {
	if p.Plan != nil {
		t.Plan = *p.Plan
	}
	if p.Anchor != nil {
		t.Anchor = *p.Anchor
	}
	if p.Timezone != nil {
		t.Timezone = *p.Timezone
	}
	if p.Status != nil {
		t.Status = *p.Status
	}
	if p.Metadata != nil {
		t.Metadata = p.Metadata
	}
	t = t.without(p)
	t.Overrides, t.Features = check.Patched(t.Overrides, p.Overrides), t.Features.With(p.Features)
	return t
}

// without returns t without what p removes.
func (t Tenant) without(p *TenantPatch) Tenant {
	if p.removes("timezone") {
		t.Timezone = defaultZone
	}
	if p.removes("anchor") {
		t.Anchor = t.CreatedAt
	}
	if p.removes("metadata") {
		t.Metadata = json.RawMessage("{}")
	}
	if p.removes("overrides") {
		t.Overrides = nil
	}
	if p.removes("features") {
		t.Features = nil
	}
	return t
}

// fieldIfMatch is the field of faults about IfVersion: the name of the header in which clients send the version.
const fieldIfMatch = "If-Match"

// requireVersion fails unless t has the wanted version. It does not fail if wanted is nil.
func (t *Tenant) requireVersion(wanted *int64) error {
	if wanted == nil || *wanted == t.Version {
		return nil
	}
	return &errcode.Error{Code: errcode.Conflict, Fields: []body.Fault{{
		Field: fieldIfMatch, Message: fmt.Sprintf(`must be "%d", the tenant's present version, not "%d"`, t.Version, *wanted),
	}}}
}
