package price

import (
	"fmt"
	"math/big"
	"time"
)

// Payment describes how use of one meter was paid with units of another meter. Ledger entries store it in this form.
type Payment struct {
	For   string `json:"for"`   // the meter whose use was paid for
	Units int64  `json:"units"` // number of paid units of For; 0 on further entries of the same payment
	Price int64  `json:"price"`
	Per   int64  `json:"per,omitempty"` // the number of units of For that cost Price; 0 means one unit
	// Period is the start of For's period, in which Units count as overflow. It is zero if Units is 0, and in payments
	// of versions that did not count.
	Period time.Time `json:"period,omitzero"`
}

// At returns p with the price r.
func (p Payment) At(r Ratio) Payment {
	p.Price = r.Units
	if !r.IsWhole() {
		p.Per = r.Per
	}
	return p
}

// Ratio returns the price.
func (p *Payment) Ratio() Ratio { return Ratio{Units: p.Price, Per: max(p.Per, 1)} }

// decimalsMax bounds the decimals of the text that Exact returns. If a cost has more decimals, Exact returns a
// fraction.
const decimalsMax = 9

// Exact returns the cost of n units before rounding, as text: 2.345, or 2 1/3 if the decimals are infinite or too
// many. It allocates memory; Cost does not.
func (r Ratio) Exact(n int64) string {
	cost := new(big.Rat).SetFrac(new(big.Int).Mul(big.NewInt(n), big.NewInt(r.Units)), big.NewInt(r.Per))
	if decimals, ends := cost.FloatPrec(); ends && decimals <= decimalsMax {
		return cost.FloatString(decimals)
	}
	whole, rest := new(big.Int).QuoRem(cost.Num(), cost.Denom(), new(big.Int))
	if whole.Sign() == 0 {
		return fmt.Sprintf("%d/%d", rest, cost.Denom())
	}
	return fmt.Sprintf("%d %d/%d", whole, rest, cost.Denom())
}
