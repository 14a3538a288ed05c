package client

import (
	"encoding/json"
	"fmt"
)

// PriceRatio is the price of units of one meter in units of another meter: Per units cost Units units of the paying
// meter. If the price of one unit is a whole number, Per is 1. The cost of each item of a debit is rounded up to
// whole units.
type PriceRatio struct {
	Units int64 `json:"units"`
	Per   int64 `json:"per"`
}

// MarshalJSON encodes the price as the contract does: as the number Units if Per is 0 or 1, and otherwise as an
// object.
func (p PriceRatio) MarshalJSON() ([]byte, error) {
	if p.Per == 0 || p.Per == 1 {
		return json.Marshal(p.Units)
	}
	type object PriceRatio
	return json.Marshal(object(p))
}

// UnmarshalJSON decodes a price that is a number or an object.
func (p *PriceRatio) UnmarshalJSON(text []byte) error {
	var units int64
	if json.Unmarshal(text, &units) == nil {
		*p = PriceRatio{Units: units, Per: 1}
		return nil
	}
	type object PriceRatio
	var o object
	if err := json.Unmarshal(text, &o); err != nil {
		return fmt.Errorf("a price is an integer, or units and per: %w", err)
	}
	*p = PriceRatio(o)
	return nil
}
