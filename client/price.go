package client

import (
	"encoding/json"
	"fmt"
)

// PriceRatio is a price: Units of the paying meter for Per units of the paid meter. Per is 1 if the price of one unit
// is a whole number. The cost of each item of a debit is rounded up.
type PriceRatio struct {
	Units int64 `json:"units"`
	Per   int64 `json:"per"`
}

// MarshalJSON returns the number of units if Per is 1 or 0, and an object otherwise, as in the contract.
func (p PriceRatio) MarshalJSON() ([]byte, error) {
	if p.Per == 0 || p.Per == 1 {
		return json.Marshal(p.Units)
	}
	type object PriceRatio
	return json.Marshal(object(p))
}

// UnmarshalJSON reads a number or an object.
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
