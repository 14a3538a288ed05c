package answers

import (
	"github.com/quotasvc/quotasvc/internal/httpapi/wire"
	"github.com/quotasvc/quotasvc/internal/report/denial"
)

// Denials returns the refused requests of a tenant.
func Denials(l *denial.List) wire.DenialList {
	return wire.DenialList{
		From: l.From, To: l.To, CountsFrom: l.CountsFrom, Items: Map(l.Denials, denialOf),
		Counts: Map(l.Counts, func(c *denial.Count) wire.DenialCount {
			return wire.DenialCount{Minute: c.Minute, Code: c.Code, Meter: c.Meter, Rule: c.Rule, N: c.N}
		}),
	}
}

func denialOf(d *denial.Denial) wire.Denial {
	out := wire.Denial{
		At: d.At, Code: d.Code, Meter: d.Meter, Rule: d.Rule, Subject: d.Subject, Route: d.Route, Required: d.Required, RequestID: d.RequestID,
	}
	if d.Required > 0 {
		out.Available = &d.Available
	}
	return out
}

// Shadow returns what a limit in shadow mode would have denied.
func Shadow(rule string, counts []denial.ShadowCount) wire.LimitShadow {
	return wire.LimitShadow{Rule: rule, Spans: Map(counts, func(c *denial.ShadowCount) wire.LimitShadowSpan {
		return wire.LimitShadowSpan{
			Span: c.Span, From: c.From, To: c.To, WouldDeny: c.Denies, Tenants: c.Tenants, WouldDenyRefused: c.DeniesRefused,
			Top: Map(c.Top, func(t *denial.ShadowTenant) wire.LimitShadowTenant {
				return wire.LimitShadowTenant{Tenant: t.Tenant, WouldDeny: t.Denies}
			}),
			Limits: Map(c.Limits, func(l *denial.ShadowLimit) wire.LimitShadowLimit {
				return wire.LimitShadowLimit{Rule: l.Rule, Denied: l.Denies + l.Passes, WouldDeny: l.Denies, WouldPass: l.Passes}
			}),
		}
	})}
}
