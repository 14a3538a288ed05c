package catalog

import (
	"encoding/json"
	"time"

	"github.com/quotasvc/quotasvc/internal/body"
)

// MaxReason is the longest reason in bytes, as the ledger's.
const MaxReason = 500

// TenantPatch is a change of the fields that are not nil.
type TenantPatch struct {
	Plan     *string         `json:"plan,omitzero"`
	Anchor   *time.Time      `json:"anchor,omitzero"`
	Timezone *string         `json:"timezone,omitzero"`
	Status   *string         `json:"status,omitzero"`
	Metadata json.RawMessage `json:"metadata,omitzero"` // replaces the whole object; nil: no change

	// Overrides changes the amounts of the meters it names; nil takes an override back. Others stay.
	Overrides map[string]*int64 `json:"overrides,omitzero"`

	// Apply says when a new plan, anchor, zone or override takes hold: at the next period of each meter, or now, which ends
	// the open period of every meter and subject that was opened under other terms. It also brings forward what was to wait
	// for the next period, a newer version of the plan too. "": ApplyNextPeriod.
	Apply string `json:"apply,omitzero"`
	// Prorate gives the periods that Apply now opens their share of the allowance only.
	Prorate bool `json:"prorate,omitzero"`

	Reason    string `json:"reason,omitzero"`  // why the terms change, 1..MaxReason bytes, for their history; empty: not known
	IfVersion *int64 `json:"-"`                // refuses the patch with CodeConflict unless the tenant has this version; nil: any
	DryRun    bool   `json:"dry_run,omitzero"` // return what would become of the tenant, and change nothing
}

// When a change of terms takes hold.
const (
	applyNow        = "now"
	applyNextPeriod = "next_period"
)

// TenantChange is a tenant before a patch and after it, or after it would have been done.
type TenantChange struct{ Before, After Tenant }

// Check returns all faults of p that can be found without the tenant.
func (p *TenantPatch) Check(given body.Given) []body.Fault {
	c := checker{given: given}
	if p.Plan != nil {
		c.id("plan", *p.Plan)
	}
	if p.Anchor != nil {
		c.instant("anchor", *p.Anchor)
	}
	if p.Timezone != nil {
		c.zone("timezone", *p.Timezone)
	}
	if p.Status != nil {
		c.oneOf("status", *p.Status, StatusActive, StatusSuspended)
	}
	if p.Metadata != nil {
		c.metadata("metadata", p.Metadata)
	}
	p.checkApply(&c)
	checkOverrides(&c, p.Overrides)
	return c.fields
}

func (p *TenantPatch) checkApply(c *checker) {
	if c.has("apply", p.Apply != "") {
		c.oneOf("apply", p.Apply, applyNow, applyNextPeriod)
	}
	c.require(!p.Prorate || p.Apply == applyNow, "prorate", "goes with apply now only")
	terms := p.Plan != nil || p.Anchor != nil || p.Timezone != nil || len(p.Overrides) > 0
	c.require(p.Apply == "" || terms, "apply", "goes with plan, anchor, timezone or overrides only")
	if c.has("reason", p.Reason != "") {
		c.require(terms, "reason", "goes with plan, anchor, timezone or overrides only")
		c.text("reason", p.Reason, 1, MaxReason)
	}
}

// timing is when and why changed terms take hold.
func (p *TenantPatch) timing() timing {
	return timing{now: p.Apply == applyNow, prorate: p.Prorate, reason: p.Reason, dry: p.DryRun}
}

// patched is t with p's changes.
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
	t.Overrides = overridden(t.Overrides, p.Overrides)
	return t
}

// fieldIfMatch is what clients call the version they want: the header it came in.
const fieldIfMatch = "If-Match"

// requireVersion fails unless t has the version that is wanted, if one is.
func (t *Tenant) requireVersion(wanted *int64) error {
	if wanted == nil || *wanted == t.Version {
		return nil
	}
	return fieldError(CodeConflict, fieldIfMatch, `must be "%d", the tenant's present version, not "%d"`, t.Version, *wanted)
}
