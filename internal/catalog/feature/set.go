package feature

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/quotasvc/quotasvc/internal/catalog/check"
	"github.com/quotasvc/quotasvc/internal/kit/body"
	"github.com/quotasvc/quotasvc/internal/kit/bound"
)

// Max is the largest number of features of a plan, and of features that a tenant overrides. The features are in
// memory with the plan and with the tenant.
const Max = 100

// Value is the value of a feature. The zero value is false.
type Value struct {
	On      bool
	Number  int64 // 0..bound.MaxAmount, if Counted
	Counted bool  // the value is Number, not On
}

// Set contains features by name. A nil Set has no features.
type Set map[string]Value

// Switch returns the value of a feature that is on or off.
func Switch(on bool) Value { return Value{On: on} }

// Number returns the value of a feature that is an integer.
func Number(n int64) Value { return Value{Number: n, Counted: true} }

// Granted reports whether the value lets a tenant use the feature.
func (v Value) Granted() bool { return v.On || v.Number > 0 }

// ReductionTo returns the words of a warning that say how the value `after` is less than v. In the warning, a number of
// tenants follows these words. It returns "" if v is not reduced. A number and a switch cannot be compared.
func (v Value) ReductionTo(after Value) string {
	switch {
	case v.Granted() && !after.Granted():
		return "is lost by"
	case v.Counted && after.Counted && after.Number < v.Number:
		return fmt.Sprintf("falls from %d to %d for", v.Number, after.Number)
	default:
		return ""
	}
}

// MarshalJSON returns the value as JSON: true, false or an integer.
func (v Value) MarshalJSON() ([]byte, error) {
	if v.Counted {
		return strconv.AppendInt(nil, v.Number, 10), nil
	}
	return strconv.AppendBool(nil, v.On), nil
}

// MustBe is the message of the fault for an invalid value.
var MustBe = fmt.Sprintf("must be true, false or an integer from 0 to %d", bound.MaxAmount)

var errNoValue = errors.New(MustBe)

// UnmarshalJSON reads true, false or an integer.
func (v *Value) UnmarshalJSON(text []byte) error {
	switch string(text) {
	case "true", "false":
		*v = Switch(string(text) == "true")
		return nil
	case "null":
		return errNoValue
	}
	var n int64
	if err := json.Unmarshal(text, &n); err != nil || n < 0 || n > bound.MaxAmount {
		return errNoValue
	}
	*v = Number(n)
	return nil
}

// Of returns the features that a tenant has: the plan's features, with the tenant's own features in place of features
// with the same names.
func Of(plan, own Set) Set {
	if len(own) == 0 {
		return plan
	}
	all := maps.Clone(plan)
	if all == nil {
		all = make(Set, len(own))
	}
	maps.Copy(all, own)
	return all
}

// Lookup returns the value of one feature of Of(plan, own), without building that set.
func Lookup(plan, own Set, name string) Value {
	if v, overridden := own[name]; overridden {
		return v
	}
	return plan[name]
}

// Check adds the faults of changes, which are a set or a patch. In a patch, nil removes a feature. field is the name
// of the request field that contains the changes.
func Check(c *check.Checker, field string, changes map[string]*Value) {
	if !c.Require(len(changes) <= Max, field, "must have at most %d members", Max) {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(changes)) {
		c.Require(bound.ID(name), field+"."+body.Clip(name), "is not the name of a feature, which %s", bound.MustBeID)
	}
}

// Changes returns a patch that creates s.
func (s Set) Changes() map[string]*Value { return check.PatchTo(s) }

// With returns s with the given changes. It returns nil if no feature remains. It does not change s.
func (s Set) With(changes map[string]*Value) Set { return check.Patched(s, changes) }
