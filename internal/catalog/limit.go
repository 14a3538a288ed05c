package catalog

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// MaxRoute bounds a route in bytes, as in requests.
const MaxRoute = 256

// The words of limits that this package gives a meaning to: defaults.
const (
	kindTokenBucket = "token_bucket"
	modeEnforce     = "enforce"
	localShare      = "local_share"
)

// Limit is a rate limit.
type Limit struct {
	Rule  string   `json:"rule"`
	Per   []string `json:"per"` // tenant, subject, route, ip, global: every combination of these has a bucket of its own
	Match Match    `json:"match,omitzero"`
	Kind  string   `json:"kind"`
	Rate  string   `json:"rate"`           // as in 60/s
	Burst int64    `json:"burst,omitzero"` // the bucket's capacity, 1..MaxAmount; 0: the rate's count
	Cost  int64    `json:"cost,omitzero"`  // what a request takes, 1..MaxAmount; 0: 1

	Mode           string `json:"mode,omitzero"`             // enforce or shadow; "": enforce
	OnBackendError string `json:"on_backend_error,omitzero"` // local_share, open or closed; "": local_share

	CreatedAt time.Time `json:"-"`
	UpdatedAt time.Time `json:"-"`
}

// Match says which requests a limit is about: those that equal all that is not empty.
type Match struct {
	Route string `json:"route,omitzero"`
	Meter string `json:"meter,omitzero"`
	Plan  string `json:"plan,omitzero"`
}

// Validate reports everything that is wrong with l as an *Error with CodeInvalidArgument, or nil. Whether what it matches
// exists is for the store to say, and whether its rate can be counted for the limiter (Config.CheckLimit).
func (l *Limit) Validate() error {
	return (&checker{fields: l.faults()}).err()
}

func (l *Limit) faults() []FieldError {
	var c checker
	c.id("rule", l.Rule)
	c.require(len(l.Per) >= 1 && len(l.Per) <= 5, "per", "must have 1 to 5 elements")
	for i, per := range l.Per[:min(len(l.Per), 5)] {
		field := fmt.Sprintf("per[%d]", i)
		c.oneOf(field, per, "tenant", "subject", "route", "ip", "global")
		c.require(!slices.Contains(l.Per[:i], per), field, "must not be there twice")
	}
	if l.Match.Route != "" {
		c.text("match.route", l.Match.Route, 1, MaxRoute)
	}
	if l.Match.Meter != "" {
		c.id("match.meter", l.Match.Meter)
	}
	if l.Match.Plan != "" {
		c.id("match.plan", l.Match.Plan)
	}
	c.oneOf("kind", l.Kind, kindTokenBucket, "fixed_window", "sliding_window", "sliding_log", "leaky_bucket", "concurrency")
	c.require(rateForm.MatchString(l.Rate), "rate", "must be a count per period, as in 60/s, 100/min, 5/30s, 10/day")
	if l.Burst != 0 {
		c.amount("burst", l.Burst, 1)
	}
	if l.Cost != 0 {
		c.amount("cost", l.Cost, 1)
	}
	if l.Mode != "" {
		c.oneOf("mode", l.Mode, modeEnforce, "shadow")
	}
	if l.OnBackendError != "" {
		c.oneOf("on_backend_error", l.OnBackendError, localShare, "open", "closed")
	}
	return c.fields
}

// normalize fills in defaults, so that what is stored and compared has one form.
func (l *Limit) normalize() {
	l.CreatedAt, l.UpdatedAt = time.Time{}, time.Time{}
	if l.Burst == 0 && l.Kind == kindTokenBucket {
		count, _, _ := strings.Cut(l.Rate, "/")
		l.Burst, _ = strconv.ParseInt(count, 10, 64) // rateForm has 1 to 16 digits
	}
	if l.Cost == 0 {
		l.Cost = 1
	}
	if l.Mode == "" {
		l.Mode = modeEnforce
	}
	if l.OnBackendError == "" {
		l.OnBackendError = localShare
	}
}

// same reports whether storing l in place of o changes nothing. Both are normalized.
func (l Limit) same(o Limit) bool {
	l.CreatedAt, l.UpdatedAt = o.CreatedAt, o.UpdatedAt
	return reflect.DeepEqual(l, o)
}
