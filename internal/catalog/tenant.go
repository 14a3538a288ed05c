package catalog

import (
	"bytes"
	"encoding/json"
	"maps"
	"time"

	"github.com/quotasvc/quotasvc/internal/body"
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
	Metadata json.RawMessage `json:"metadata,omitzero"` // a JSON object of at most bound.MaxMetadata bytes; nil: {}

	// Overrides are amounts of this tenant's own, by meter: 0..bound.MaxAmount per period instead of what the plan grants. The plan
	// has the meter when an override is made; if a later version has not, the override says nothing.
	Overrides map[string]int64 `json:"overrides,omitempty"`

	Version   int64     `json:"-"` // 1 when it is made, one more with every change
	CreatedAt time.Time `json:"-"`
	UpdatedAt time.Time `json:"-"`
}

// Check returns all faults of t.
func (t *Tenant) Check(given body.Given) []body.Fault {
	c := checker{given: given}
	c.id("tenant", t.ID)
	c.id("plan", t.Plan)
	if c.has("anchor", !t.Anchor.IsZero()) {
		c.instant("anchor", t.Anchor)
	}
	if c.has("timezone", t.Timezone != "") {
		c.zone("timezone", t.Timezone)
	}
	if c.has("status", t.Status != "") {
		c.oneOf("status", t.Status, StatusActive, StatusSuspended)
	}
	if t.Metadata != nil {
		c.metadata("metadata", t.Metadata)
	}
	checkOverrides(&c, pointers(t.Overrides))
	return c.fields
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
	if len(t.Overrides) == 0 {
		t.Overrides = nil
	}
}

// sameTerms reports whether a change from t to o leaves the ledger's terms alone.
func (t *Tenant) sameTerms(o *Tenant) bool {
	return t.Plan == o.Plan && t.Anchor.Equal(o.Anchor) && t.Timezone == o.Timezone &&
		maps.Equal(t.Overrides, o.Overrides)
}

// same reports whether storing t in place of o changes nothing. The metadata of both went through jsonb or are equal bytes.
func (t *Tenant) same(o *Tenant) bool {
	return t.ID == o.ID && t.sameTerms(o) && t.Status == o.Status && bytes.Equal(t.Metadata, o.Metadata)
}
