package report

import (
	"slices"

	"github.com/quotasvc/quotasvc/lab/bench/chart"
)

// Target is a target with the measured value.
type Target struct {
	What     string  `json:"what"`
	Unit     string  `json:"unit"`
	Target   float64 `json:"target,omitempty"`
	Measured float64 `json:"measured"`
	Low      float64 `json:"low,omitempty"` // lowest value of the rounds
	High     float64 `json:"high,omitempty"`
	AtMost   bool    `json:"at_most,omitempty"` // whether the target is an upper bound
	Pass     bool    `json:"pass"`
}

// AtMost returns a target with an upper bound.
func AtMost(what, unit string, most, measured float64) Target {
	return Target{What: what, Unit: unit, Target: most, Measured: measured, AtMost: true, Pass: measured <= most}
}

// AtLeast returns a target with a lower bound.
func AtLeast(what, unit string, least, measured float64) Target {
	return Target{What: what, Unit: unit, Target: least, Measured: measured, Pass: measured >= least}
}

// Between returns the target with the lowest and the highest of the rounds' values.
func (t Target) Between(rounds []float64) Target {
	if len(rounds) > 0 {
		t.Low, t.High = slices.Min(rounds), slices.Max(rounds)
	}
	return t
}

// AllMet reports whether all targets are met.
func AllMet(targets []Target) bool {
	return !slices.ContainsFunc(targets, func(t Target) bool { return !t.Pass })
}

// strain returns the used share of the target's allowance. It is at most 1 if the target is met, and at least 1 if
// the target is missed.
func (t *Target) strain() float64 {
	s := 0.0
	switch {
	case t.AtMost && t.Target > 0:
		s = t.Measured / t.Target
	case !t.AtMost && t.Measured > 0:
		s = t.Target / t.Measured
	case !t.Pass: // the allowance is zero, or the measured value is zero
		return strainCut
	}
	if t.Pass {
		return min(s, 1)
	}
	return max(s, 1)
}

func (t *Target) wanted() string {
	sign := "≥"
	if t.AtMost {
		sign = "≤"
	}
	return sign + " " + amount(t.Target, t.Unit)
}

// Say returns a text with the name of the target, the measured value and the required value.
func (t *Target) Say() string {
	return t.What + " is " + amount(t.Measured, t.Unit) + ", wanted " + t.wanted()
}

func (t *Target) verdict() string {
	if t.Pass {
		return "met"
	}
	return "MISSED"
}

// amount returns a value with its unit.
func amount(v float64, unit string) string {
	switch {
	case unit == "":
		return chart.Figure(v)
	case unit[0] == '/':
		return chart.Figure(v) + unit
	default:
		return chart.Figure(v) + " " + unit
	}
}
