package catalog

import (
	"fmt"
	"slices"
	"time"

	"github.com/quotasvc/quotasvc/internal/catalog/check"
	"github.com/quotasvc/quotasvc/internal/kit/body"
)

const (
	// MaxUnit is the longest name of a meter's unit, in bytes.
	MaxUnit = 64

	// MaxDescription is the longest description of a meter, in bytes.
	MaxDescription = 1024

	// MaxDimensions is the largest number of dimensions of a meter. A query can divide use by one of these
	// dimensions.
	MaxDimensions = 5
)

// The kinds of meters.
const (
	KindCounter = "counter" // debits take units from grants
	KindGauge   = "gauge"   // a client sets its value, such as the number of seats or projects (package gauge)
)

// Meter describes something that is counted, for example API calls.
type Meter struct {
	ID          string `json:"meter"`
	Unit        string `json:"unit"` // the name of the unit of amounts, for example call
	Description string `json:"description,omitzero"`

	Kind string `json:"kind,omitzero"` // counter or gauge; empty: counter. It cannot be changed while the meter is in use

	// DenialReplay says whether a denial is stored under its idempotency key and is replayed, as a success is.
	DenialReplay bool `json:"denial_replay"`

	// Dimensions are the names of members of request metadata, for example model. Use can be divided by these
	// members.
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
