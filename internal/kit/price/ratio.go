package price

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/bits"

	"github.com/quotasvc/quotasvc/internal/kit/bound"
)

// Ratio is a price: Units of the paying meter for Per units of the paid meter. Units and Per are 1..bound.MaxAmount.
// The zero value is not a price.
type Ratio struct{ Units, Per int64 }

// Whole returns the price at which each paid unit costs this many units of the paying meter.
func Whole(units int64) Ratio { return Ratio{units, 1} }

// IsWhole reports whether one paid unit costs a whole number of units. Then no cost is rounded.
func (r Ratio) IsWhole() bool { return r.Per == 1 }

// Cost returns the cost of n paid units, rounded up.
func (r Ratio) Cost(n int64) int64 {
	hi, lo := bits.Mul64(uint64(n), uint64(r.Units)) //nolint:gosec // neither is negative
	lo, carry := bits.Add64(lo, uint64(r.Per-1), 0)  //nolint:gosec // Per is 1 or more
	return quotient(hi+carry, lo, r.Per)
}

// MaxUnits returns the largest number of paid units that cost at most n.
func (r Ratio) MaxUnits(n int64) int64 {
	hi, lo := bits.Mul64(uint64(n), uint64(r.Per)) //nolint:gosec // neither is negative
	return quotient(hi, lo, r.Units)
}

// quotient returns (hi, lo) / by, rounded down. If that is more than math.MaxInt64, it returns math.MaxInt64.
func quotient(hi, lo uint64, by int64) int64 {
	if hi >= uint64(by) { //nolint:gosec // by is positive
		return math.MaxInt64
	}
	q, _ := bits.Div64(hi, lo, uint64(by)) //nolint:gosec // by is positive
	return int64(min(q, math.MaxInt64))    //nolint:gosec // at most math.MaxInt64
}

// String returns the price as text for people: 3, or 1 per 1000.
func (r Ratio) String() string {
	if r.IsWhole() {
		return fmt.Sprint(r.Units)
	}
	return fmt.Sprintf("%d per %d", r.Units, r.Per)
}

// MarshalJSON returns an integer for a whole price, and {"units", "per"} for any other price.
func (r Ratio) MarshalJSON() ([]byte, error) {
	if r.IsWhole() {
		return fmt.Append(nil, r.Units), nil
	}
	return fmt.Appendf(nil, `{"units":%d,"per":%d}`, r.Units, r.Per), nil
}

// MustBe is the sentence of the fault for a value that is not a price.
var MustBe = fmt.Sprintf(`must be an integer from 1 to %d, or {"units": n, "per": m} of two such integers, as in {"units": 1, "per": 1000}`,
	bound.MaxAmount)

var errNoPrice = errors.New(MustBe)

// UnmarshalJSON reads the output of MarshalJSON. It also accepts an object whose per is 1.
func (r *Ratio) UnmarshalJSON(text []byte) error {
	read := Ratio{Per: 1}
	if bytes.HasPrefix(text, []byte("{")) {
		var parts struct {
			Units *int64 `json:"units"`
			Per   *int64 `json:"per"`
		}
		d := json.NewDecoder(bytes.NewReader(text))
		d.DisallowUnknownFields()
		if err := d.Decode(&parts); err != nil || parts.Units == nil || parts.Per == nil {
			return errNoPrice
		}
		read = Ratio{*parts.Units, *parts.Per}
	} else if err := json.Unmarshal(text, &read.Units); err != nil {
		return errNoPrice
	}
	if !read.Valid() {
		return errNoPrice
	}
	*r = read
	return nil
}

// Valid reports whether Units and Per are from 1 to bound.MaxAmount.
func (r Ratio) Valid() bool {
	return r.Units >= 1 && r.Units <= bound.MaxAmount && r.Per >= 1 && r.Per <= bound.MaxAmount
}
