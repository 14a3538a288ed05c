package check

import (
	"bytes"
	"encoding/json/jsontext"
	"fmt"
	"slices"
	"time"

	"github.com/quotasvc/quotasvc/internal/kit/body"
	"github.com/quotasvc/quotasvc/internal/kit/bound"
	"github.com/quotasvc/quotasvc/internal/kit/period"
)

// Checker collects the faults of an object.
type Checker struct {
	Given  body.Given   // the fields of the object that are present in the document
	Faults []body.Fault // the faults found so far
}

// Has reports whether a field must be checked: because it is set, or because it is present in the document.
func (c *Checker) Has(field string, set bool) bool { return set || c.Given.Has(field) }

// Require returns ok. If ok is false, it adds a fault of the field.
func (c *Checker) Require(ok bool, field, format string, args ...any) bool {
	if !ok {
		c.Faults = append(c.Faults, body.Fault{Field: field, Message: fmt.Sprintf(format, args...)})
	}
	return ok
}

// Within runs check on a part of the object, and adds the faults that it finds. It prefixes their paths with part.
func (c *Checker) Within(part string, check func(*Checker)) {
	inner := Checker{Given: c.Given.In(part)}
	check(&inner)
	for _, f := range inner.Faults {
		c.Faults = append(c.Faults, body.Fault{Field: part + "." + f.Field, Message: f.Message})
	}
}

// ID adds a fault unless id is a valid id.
func (c *Checker) ID(field, id string) {
	c.Require(bound.ID(id), field, bound.MustBeID)
}

// Name adds a fault unless name is a valid id of a tenant or a subject.
func (c *Checker) Name(field, name string) {
	c.Require(bound.Name(name), field, "%s", bound.MustBeName)
}

// Amount adds a fault unless n is an amount of at least low. It reports whether n is valid.
func (c *Checker) Amount(field string, n, low int64) bool {
	return c.Require(n >= low && n <= bound.MaxAmount, field, "%s", bound.MustBeInteger(low, bound.MaxAmount))
}

// Text adds a fault unless s is human-readable text of low to high bytes.
func (c *Checker) Text(field, s string, low, high int) {
	c.Require(bound.Text(s, low, high), field, "%s", bound.MustBeText(low, high))
}

// OneOf adds a fault unless s is one of the choices.
func (c *Checker) OneOf(field, s string, choices ...string) {
	c.Require(slices.Contains(choices, s), field, "%s", body.OneOf(choices...))
}

// Instant adds a fault unless t is in the range of instants for which periods can be computed.
func (c *Checker) Instant(field string, t time.Time) {
	c.Require(!t.Before(period.Earliest) && t.Before(period.Latest), field, "%s", body.MustBeInstant())
}

// Zone adds a fault unless name is the name of a time zone.
func (c *Checker) Zone(field, name string) {
	c.Require(body.IsZone(name), field, body.MustBeZone)
}

// Metadata adds a fault unless raw is a JSON object that a jsonb column can store. It returns the object without
// blanks, or nil for a fault.
func (c *Checker) Metadata(raw []byte) []byte {
	v := jsontext.Value(bytes.Clone(raw))
	if !c.Require(v.IsValid() && v.Compact() == nil && bound.Metadata(v), "metadata", bound.MustBeMetadata) {
		return nil
	}
	return v
}
