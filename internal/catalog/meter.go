package catalog

import (
	"fmt"
	"slices"
	"time"

	"github.com/quotasvc/quotasvc/internal/catalog/check"
	"github.com/quotasvc/quotasvc/internal/kit/body"
)

const (
	// MaxUnit bounds the name of a meter's unit in bytes.
	MaxUnit = 64

	// MaxDescription bounds the description of a meter in bytes.
	MaxDescription = 1024

	// MaxDimensions bounds the dimensions of a meter. A query divides use by one dimension.
	MaxDimensions = 5
)

// The kinds of meters.
const (
	KindCounter = "counter" // debits take units from grants
	KindGauge   = "gauge"   // its value is set, as the number of seats or projects (package gauge)
)

// Meter is a thing that is counted.
type Meter struct {
	ID          string `json:"meter"`
	Unit        string `json:"unit"` // the unit that amounts count
	Description string `json:"description,omitzero"`

	Kind string `json:"kind,omitzero"` // counter or gauge; empty: counter. It cannot be changed while the meter is in use

	// DenialReplay says that a denial is stored under its idempotency key and is replayed, as a success is.
	DenialReplay bool `json:"denial_replay"`

	// Dimensions are the members of the metadata of requests by which use can be divided, such as model.
	Dimensions []string `json:"dimensions,omitzero"`

	CreatedAt time.Time `json:"-"`
	UpdatedAt time.Time `json:"-"`
}

// Check returns all faults of m.
func (m *Meter) Check(given body.Given) []body.Fault {
	c := check.Checker{Given: given}
	c.ID("meter", m.ID)
	c.Text("unit", m.Unit, 1, MaxUnit)
	c.Text("description", m.Description, 0, MaxDescription)
	c.Require(len(m.Dimensions) <= MaxDimensions, "dimensions", "must have at most %d members", MaxDimensions)
	for i, name := range m.Dimensions {
		field := fmt.Sprintf("dimensions[%d]", i)
		c.ID(field, name)
		c.Require(!slices.Contains(m.Dimensions[:i], name), field, "is a duplicate")
	}
	if c.Has("kind", m.Kind != "") {
		c.OneOf("kind", m.Kind, KindCounter, KindGauge)
	}
	c.Require(m.Kind != KindGauge || !m.DenialReplay, "denial_replay", "must be false if kind is gauge: nothing is debited")
	return c.Faults
}

// same reports whether storing m instead of o changes nothing.
func (m Meter) same(o Meter) bool {
	return m.ID == o.ID && m.Unit == o.Unit && m.Description == o.Description && m.DenialReplay == o.DenialReplay && slices.Equal(m.Dimensions, o.Dimensions)
}
