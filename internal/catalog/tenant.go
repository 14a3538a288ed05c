package catalog

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
	"time"

	"github.com/quotasvc/quotasvc/internal/catalog/check"
	"github.com/quotasvc/quotasvc/internal/catalog/feature"
	"github.com/quotasvc/quotasvc/internal/kit/body"
	"github.com/quotasvc/quotasvc/internal/kit/period"
)

// Values of Tenant.Status.
const (
	StatusActive    = "active"
	StatusSuspended = "suspended" // requests are refused; balances stay
)

// defaultZone is the time zone of a tenant for which no zone was set.
const defaultZone = "UTC"

// Tenant is a billed party: for example a company that uses the product.
type Tenant struct {
	ID       string          `json:"tenant"`
	Plan     string          `json:"plan"`
	Anchor   time.Time       `json:"anchor,omitzero"`   // base instant of periods with anchor tenant; zero: the tenant's creation
	Timezone string          `json:"timezone,omitzero"` // IANA zone of its periods; empty: UTC
	Status   string          `json:"status,omitzero"`   // active or suspended; empty: active
	Metadata json.RawMessage `json:"metadata,omitzero"` // a JSON object of at most bound.MaxMetadata bytes; nil: {}

	// Overrides maps meters to the amounts per period that this tenant gets instead of the plan's amounts,
	// 0..bound.MaxAmount. The plan must have the meter when an override is stored. If a later version of the plan
	// lacks the meter, the override has no effect.
	Overrides map[string]int64 `json:"overrides,omitempty"`

	// Features replace the features of the plan that have the same names.
	Features feature.Set `json:"features,omitempty"`

	// Pending is the change of terms that waits; nil: none. All other fields are those in force.
	Pending *Pending `json:"-"`

	Version   int64     `json:"-"` // 1 at creation, one more with each change
	CreatedAt time.Time `json:"-"`
	UpdatedAt time.Time `json:"-"`
}

// TenantFacts are the facts of a tenant that requests need. They are those in force at the instant at which Catalog.Tenant
// returned them.
type TenantFacts struct {
	ID, Plan    string
	PlanVersion int32     // the version of the plan that is in force
	PlanSince   time.Time // when that version took effect; zero: it has been in force since the terms
	Timezone    string    // IANA zone of its periods
	Suspended   bool      // requests of the tenant are refused

	// RuleOverrides reports whether limits are overridden for the tenant. SubjectOverrides reports whether limits are
	// overridden for subjects of the tenant. See package override.
	RuleOverrides, SubjectOverrides bool

	Features feature.Set // features that the tenant overrides; nil: none

	CreatedAt, UpdatedAt time.Time
	next                 *nextFacts    // what a pending change alters; nil: no change waits
	versions             []versionFrom // of the plan; nil: the tenant has the newest version
	newest               time.Time     // when the newest version of its plans was made that was known
	Read                 uint32        // number of the read that returned these facts; every change causes a new read
}

// Check returns all faults of t.
func (t *Tenant) Check(given body.Given) []body.Fault {
	c := check.Checker{Given: given}
	c.Name("tenant", t.ID)
	c.ID("plan", t.Plan)
	if c.Has("anchor", !t.Anchor.IsZero()) {
		c.Instant("anchor", t.Anchor)
	}
	if c.Has("timezone", t.Timezone != "") {
		c.Zone("timezone", t.Timezone)
	}
	if c.Has("status", t.Status != "") {
		c.OneOf("status", t.Status, StatusActive, StatusSuspended)
	}
	if t.Metadata != nil {
		c.Metadata(t.Metadata)
	}
	checkOverrides(&c, check.PatchTo(t.Overrides))
	feature.Check(&c, "features", t.Features.Changes())
	return c.Faults
}

// Suspended reports whether requests of the tenant are refused.
func (t *Tenant) Suspended() bool { return t.Status == StatusSuspended }

// normalize sets defaults, so that tenants with the same meaning are equal. A zero anchor stays zero, because only
// the store knows the instant of creation.
func (t *Tenant) normalize() {
	t.Anchor = period.Micros(t.Anchor)
	t.Timezone = cmp.Or(t.Timezone, defaultZone)
	t.Status = cmp.Or(t.Status, StatusActive)
	if t.Metadata == nil {
		t.Metadata = json.RawMessage("{}")
	} else if metadata := new(check.Checker).Metadata(t.Metadata); metadata != nil {
		t.Metadata = metadata
	} // else it is stored, and stays as it is
	if len(t.Overrides) == 0 {
		t.Overrides = nil
	}
	if len(t.Features) == 0 {
		t.Features = nil
	}
}

// sameTerms reports whether t and o have the same plan, anchor, zone and overrides.
func (t *Tenant) sameTerms(o *Tenant) bool {
	return t.Plan == o.Plan && t.Anchor.Equal(o.Anchor) && t.Timezone == o.Timezone &&
		maps.Equal(t.Overrides, o.Overrides)
}

// same reports whether storing t instead of o changes nothing. It compares metadata as bytes: both texts must come
// from jsonb, or be the same text.
func (t *Tenant) same(o *Tenant) bool {
	return t.ID == o.ID && t.sameTerms(o) && t.Status == o.Status && bytes.Equal(t.Metadata, o.Metadata) && maps.Equal(t.Features, o.Features)
}
