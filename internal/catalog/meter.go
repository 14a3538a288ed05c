package catalog

import (
	"time"

	"github.com/quotasvc/quotasvc/internal/body"
	"github.com/quotasvc/quotasvc/internal/catalog/check"
)

const (
	// MaxUnit bounds the name of a meter's unit in bytes.
	MaxUnit = 64

	// MaxDescription bounds the description of a meter in bytes.
	MaxDescription = 1024
)

// Meter is what is counted.
type Meter struct {
	ID          string `json:"meter"`
	Unit        string `json:"unit"` // the unit that amounts count
	Description string `json:"description,omitzero"`

	// DenialReplay stores a denial under its idempotency key, and replays it like a success.
	DenialReplay bool `json:"denial_replay"`

	CreatedAt time.Time `json:"-"`
	UpdatedAt time.Time `json:"-"`
}

// Check returns all faults of m.
func (m *Meter) Check(given body.Given) []body.Fault {
	c := check.Checker{Given: given}
	c.ID("meter", m.ID)
	c.Text("unit", m.Unit, 1, MaxUnit)
	c.Text("description", m.Description, 0, MaxDescription)
	return c.Faults
}

// same reports whether storing m instead of o changes nothing.
func (m Meter) same(o Meter) bool {
	m.CreatedAt, m.UpdatedAt = o.CreatedAt, o.UpdatedAt
	return m == o
}
