package answers

import (
	"github.com/quotasvc/quotasvc/client"
	"github.com/quotasvc/quotasvc/internal/report/denial"
)

// Denials returns the refused requests of a tenant in the contract's type.
func Denials(l *denial.List) client.DenialList {
	return client.DenialList{
		From: l.From, To: l.To, CountsFrom: l.CountsFrom, Items: Map(l.Denials, denialOf),
		Counts: Map(l.Counts, func(c *denial.Count) client.DenialCount {
			return client.DenialCount{Minute: c.Minute, Code: client.ProblemCode(c.Code), Meter: c.Meter, Rule: c.Rule, N: c.N}
		}),
	}
}

func denialOf(d *denial.Denial) client.Denial {
	out := client.Denial{
		At: d.At, Code: client.ProblemCode(d.Code), Meter: d.Meter, Rule: d.Rule, Subject: d.Subject, Route: d.Route, Required: d.Required, RequestID: d.RequestID,
	}
	if d.Required > 0 {
		out.Available = &d.Available
	}
	return out
}

// Shadow returns, for each time span, how many requests a limit in shadow mode would have denied.
func Shadow(rule string, counts []denial.ShadowCount) client.LimitShadow {
	return client.LimitShadow{Rule: rule, Spans: Map(counts, func(c *denial.ShadowCount) client.LimitShadowSpan {
		return client.LimitShadowSpan{
			Span: c.Span, From: c.From, To: c.To, WouldDeny: c.Denies, Tenants: c.Tenants, WouldDenyRefused: c.DeniesRefused,
			Top: Map(c.Top, func(t *denial.ShadowTenant) client.LimitShadowTenant {
				return client.LimitShadowTenant{Tenant: t.Tenant, WouldDeny: t.Denies}
			}),
			Limits: Map(c.Limits, func(l *denial.ShadowLimit) client.LimitShadowLimit {
				return client.LimitShadowLimit{Rule: l.Rule, Denied: l.Denies + l.Passes, WouldDeny: l.Denies, WouldPass: l.Passes}
			}),
		}
	})}
}
