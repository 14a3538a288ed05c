package catalog

import (
	"bytes"
	"encoding/json"
	"time"

	"github.com/quotasvc/quotasvc/internal/period"
)

// The states of a tenant.
const (
	StatusActive    = "active"
	StatusSuspended = "suspended" // refused, but keeps its balances
)

// defaultZone is a tenant's zone until it says otherwise.
const defaultZone = "UTC"

// Tenant is a billed party.
type Tenant struct {
	ID       string          `json:"tenant"`
	Plan     string          `json:"plan"`
	Anchor   time.Time       `json:"anchor,omitzero"`   // where its tenant-anchored periods count from; zero: when it was made
	Timezone string          `json:"timezone,omitzero"` // IANA zone of its periods; "": UTC
	Status   string          `json:"status,omitzero"`   // active or suspended; "": active
	Metadata json.RawMessage `json:"metadata,omitzero"` // a JSON object of at most MaxMetadata bytes; nil: {}

	CreatedAt time.Time `json:"-"`
	UpdatedAt time.Time `json:"-"`
}

// TenantPatch is a change of what is not nil.
type TenantPatch struct {
	Plan     *string
	Anchor   *time.Time
	Timezone *string
	Status   *string
	Metadata json.RawMessage // replaces the whole object; nil: no change

	// Apply says when a new plan, anchor or zone takes hold: at the next period of each meter, or now, which ends the open
	// period of every meter of the tenant. "": ApplyNextPeriod.
	Apply string
	// Prorate gives the periods that Apply now opens their share of the allowance only.
	Prorate bool
}

// When a change of terms takes hold.
const (
	ApplyNow        = "now"
	ApplyNextPeriod = "next_period"
)

// Validate reports what is wrong with how the patch is to be applied.
func (p *TenantPatch) Validate() error {
	var c checker
	if p.Apply != "" {
		c.oneOf("apply", p.Apply, ApplyNow, ApplyNextPeriod)
	}
	c.require(!p.Prorate || p.Apply == ApplyNow, "prorate", "goes with apply now only")
	c.require(p.Apply == "" || p.Plan != nil || p.Anchor != nil || p.Timezone != nil, "apply", "goes with plan, anchor or timezone only")
	return c.err()
}

// Validate reports everything that is wrong with t as an *Error with CodeInvalidArgument, or nil. Whether the plan exists is
// for the store to say.
func (t *Tenant) Validate() error {
	var c checker
	c.id("tenant", t.ID)
	c.id("plan", t.Plan)
	if !t.Anchor.IsZero() {
		c.instant("anchor", t.Anchor)
	}
	if t.Timezone != "" {
		_, err := period.ParseZone(t.Timezone)
		c.require(err == nil, "timezone", `must be an IANA zone name such as "Europe/Berlin" or "UTC"`)
	}
	if t.Status != "" {
		c.oneOf("status", t.Status, StatusActive, StatusSuspended)
	}
	if t.Metadata != nil {
		c.metadata("metadata", t.Metadata)
	}
	return c.err()
}

// Suspended reports whether the tenant is to be refused.
func (t *Tenant) Suspended() bool { return t.Status == StatusSuspended }

// normalize fills in defaults, so that what is stored and compared has one form. A zero anchor stays: its default is when
// the tenant was made, which the store knows.
func (t *Tenant) normalize() {
	if !t.Anchor.IsZero() {
		t.Anchor = t.Anchor.UTC().Truncate(time.Microsecond)
	}
	if t.Timezone == "" {
		t.Timezone = defaultZone
	}
	if t.Status == "" {
		t.Status = StatusActive
	}
	if t.Metadata == nil {
		t.Metadata = json.RawMessage("{}")
	} else {
		var c checker
		t.Metadata = c.metadata("metadata", t.Metadata)
	}
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
	return t
}

// sameTerms reports whether a change from t to o leaves the ledger's terms alone.
func (t *Tenant) sameTerms(o *Tenant) bool {
	return t.Plan == o.Plan && t.Anchor.Equal(o.Anchor) && t.Timezone == o.Timezone
}

// same reports whether storing t in place of o changes nothing. The metadata of both went through jsonb or are equal bytes.
func (t *Tenant) same(o *Tenant) bool {
	return t.ID == o.ID && t.sameTerms(o) && t.Status == o.Status && bytes.Equal(t.Metadata, o.Metadata)
}
