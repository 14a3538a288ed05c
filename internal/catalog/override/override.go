package override

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/quotasvc/quotasvc/internal/catalog"
	"github.com/quotasvc/quotasvc/internal/kit/body"
	"github.com/quotasvc/quotasvc/internal/kit/bound"
)

// Override is the rate and burst of a rule for one tenant or subject.
type Override struct {
	Rule    string `json:"rule"`
	Tenant  string `json:"tenant"`
	Subject string `json:"subject,omitzero"` // empty: all subjects of the tenant

	Rate      string    `json:"rate,omitzero"`       // as in 60/s; empty for kind concurrency
	Burst     int64     `json:"burst,omitzero"`      // 1..bound.MaxAmount; 0: the number in Rate
	ExpiresAt time.Time `json:"expires_at,omitzero"` // zero: never

	CreatedAt time.Time `json:"-"`
	UpdatedAt time.Time `json:"-"`
}

// InForce is an override in memory that a request may use.
type InForce struct {
	Override

	// Compiled caches the compiled rule with this override. Its type belongs to the package that compiles rules.
	Compiled atomic.Value
}

// Apply returns a copy of l with the rate and burst of o.
func (o *Override) Apply(l *catalog.Limit) *catalog.Limit {
	changed := *l
	changed.Burst = o.Burst
	if l.Kind != catalog.KindConcurrency {
		changed.Rate = o.Rate
	}
	return &changed
}

const mustBeFuture = "must be in the future"

// Check returns all faults of o that can be found without the rule that it overrides.
func (o *Override) Check(given body.Given) []body.Fault {
	var faults body.Faults
	if !bound.ID(o.Rule) {
		faults.Add("rule", bound.MustBeID)
	}
	if !bound.Name(o.Tenant) {
		faults.Add("tenant", bound.MustBeName)
	}
	if o.Subject != "" && !bound.Name(o.Subject) {
		faults.Add("subject", bound.MustBeName)
	}
	if o.Burst < 0 || o.Burst > bound.MaxAmount || o.Burst == 0 && given.Has("burst") {
		faults.Add("burst", bound.MustBeInteger(1, bound.MaxAmount))
	}
	if given.Has("rate") && o.Rate == "" {
		faults.Add("rate", "must be a count per period, as in 60/s")
	}
	if given.Has("expires_at") && o.ExpiresAt.IsZero() {
		faults.Add("expires_at", mustBeFuture)
	}
	return faults
}

// fits returns the faults of o as an override of l. check is catalog.StoreConfig.CheckLimit.
func (o *Override) fits(l *catalog.Limit, check func(*catalog.Limit) error) []body.Fault {
	var faults body.Faults
	concurrency := l.Kind == catalog.KindConcurrency
	switch {
	case l.Shared():
		faults.Add("rule", "must have tenant or subject in per: all tenants share the buckets of this one")
	case o.Subject != "" && !l.PerSubject():
		faults.Add("subject", "must be absent: the subjects of a tenant share the bucket of this limit")
	}
	switch {
	case concurrency && o.Rate != "":
		faults.Add("rate", "must be absent: a limit of kind concurrency has a burst only")
	case concurrency && o.Burst == 0:
		faults.Add("burst", "is required for a limit of kind concurrency")
	case !concurrency && o.Rate == "":
		faults.Add("rate", "is required")
	}
	if faults != nil {
		return faults
	}
	err := check(o.Apply(l))
	if err == nil {
		return nil
	}
	field, message := "burst", err.Error()
	if f, ok := errors.AsType[*body.Fault](err); ok {
		switch message = f.Message; f.Field {
		case "rate":
			field = "rate"
		case "burst":
		default:
			message = fmt.Sprintf("does not fit the limit, whose %s %s", f.Field, f.Message)
		}
	}
	faults.Add(field, message)
	return faults
}

// same reports whether storing o instead of p changes nothing.
func (o *Override) same(p *Override) bool {
	return o.Rate == p.Rate && o.Burst == p.Burst && o.ExpiresAt.Equal(p.ExpiresAt)
}
