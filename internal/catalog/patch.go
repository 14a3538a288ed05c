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
	// effect at once.
	Features map[string]*feature.Value `json:"features,omitzero"`

	// Apply says when a new plan, anchor, zone or override takes effect: at the next period of each meter, or now.
	// applyNow ends each open period that was opened under other terms. Changes that wait for the next period, such
	// as a newer version of the plan, then take effect as well. Empty: applyNextPeriod.
	Apply string `json:"apply,omitzero"`
	// Prorate says whether a period that applyNow opens gets only a part of the allowance, in proportion to the rest
	// of the period.
	Prorate bool `json:"prorate,omitzero"`
	// Usage says what happens to the use of the periods that applyNow ends. usageCarry deducts this use from the new
	// allowances. usageReset does not deduct it, and requires a Reason. Empty: usageCarry.
	Usage string `json:"usage,omitzero"`

	Reason string `json:"reason,omitzero"` // why terms or status change, 1..MaxReason bytes; empty: not given
	// Removed has the names of fields that were null: see Remove.
	Removed []string `json:"-"`

	IfVersion *int64 `json:"-"`                // errcode.Conflict if the tenant has another version; nil: any version
	DryRun    bool   `json:"dry_run,omitzero"` // return the tenant as the patch would change it, and change nothing
}

// Values of TenantPatch.Apply: when a change of terms takes effect.
const (
	applyNow        = "now"
	applyNextPeriod = "next_period"
)

// Values of TenantPatch.Usage: what happens to the use of the periods that a change of terms ends.
const (
	usageCarry = "carry"
	usageReset = "reset"
)

// TenantChange is a tenant before and after a patch. For a dry run, the field After is the tenant that the patch would
// store.
type TenantChange struct {
	Before, After Tenant

	// Apply, Prorate and Usage say how the patch changes terms, as in Terms, with the defaults. Apply and Usage are
	// empty if the patch changes no terms.
	Apply   string
	Prorate bool
	Usage   string
}

// Remove implements body.Patch. A zone, an anchor, metadata, overrides and features that are removed are those of a
// tenant that was created without them. A plan and a status cannot be removed and stay; the other fields say how to
// change the tenant, and are absent.
func (p *TenantPatch) Remove(field string) { p.Removed = append(p.Removed, field) }

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
	c.Require(!p.Prorate || p.Apply == applyNow, "prorate", "requires apply now")
	if c.Has("usage", p.Usage != "") {
		c.OneOf("usage", p.Usage, usageCarry, usageReset)
		c.Require(p.Apply == applyNow, "usage", "requires apply now")
		c.Require(p.Usage != usageReset || p.Reason != "", "reason", "is required with usage reset")
	}
	terms := p.namesTerms()
	c.Require(p.Apply == "" || terms, "apply", "requires plan, anchor, timezone or overrides")
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

// change returns the TenantChange of p, without Before and After.
func (p *TenantPatch) change() TenantChange {
	if !p.namesTerms() {
		return TenantChange{}
	}
	return TenantChange{Apply: cmp.Or(p.Apply, applyNextPeriod), Prorate: p.Prorate, Usage: cmp.Or(p.Usage, usageCarry)}
}

// timing returns when the change of terms takes effect, and its reason.
func (p *TenantPatch) timing() timing {
	return timing{now: p.Apply == applyNow, prorate: p.Prorate, reset: p.Usage == usageReset, reason: p.Reason, dry: p.DryRun, patch: true}
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
