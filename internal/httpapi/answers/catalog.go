package answers

import (
	"github.com/go-json-experiment/json/jsontext"

	"github.com/quotasvc/quotasvc/internal/catalog"
	"github.com/quotasvc/quotasvc/internal/catalog/block"
	"github.com/quotasvc/quotasvc/internal/catalog/feature"
	"github.com/quotasvc/quotasvc/internal/catalog/gauge"
	"github.com/quotasvc/quotasvc/internal/httpapi/wire"
	"github.com/quotasvc/quotasvc/internal/report/tenantlist"
)

// Meter returns a meter.
func Meter(m *catalog.Meter) wire.Meter {
	return wire.Meter{
		Meter: m.ID, Unit: m.Unit, Description: m.Description, Kind: wire.MeterKind(m.Kind), DenialReplay: m.DenialReplay, Dimensions: append([]string{}, m.Dimensions...),
		CreatedAt: m.CreatedAt, UpdatedAt: m.UpdatedAt,
	}
}

// Plan returns a version of a plan.
func Plan(p *catalog.Plan) wire.Plan {
	return wire.Plan{
		Plan: p.ID, Version: p.Version, Allowances: Map(p.Allowances, allowance), Limits: Map(p.Limits, PlanLimit),
		CreatedAt: p.CreatedAt, Features: Features(p.Features),
	}
}

// Features returns features as JSON; nil for none.
func Features(set feature.Set) wire.Features {
	if len(set) == 0 {
		return nil
	}
	out := make(wire.Features, len(set))
	for name, value := range set {
		text, _ := value.MarshalJSON() // which never fails
		out[name] = text
	}
	return out
}

func allowance(a *catalog.Allowance) wire.Allowance {
	out := wire.Allowance{
		Meter: a.Meter, Amount: a.Amount, Every: wire.AllowanceEvery(a.Every), Anchor: wire.AllowanceAnchor(a.Anchor), PerSubject: a.PerSubject,
		ExpiresInDays: a.ExpiresInDays, AlertAt: a.AlertAt,
	}
	if r := a.Rollover; r != nil {
		out.Rollover = &wire.Rollover{Min: r.Min, Max: r.Max}
	}
	if o := a.Overage; o != nil {
		out.Overage = &wire.Overage{Policy: wire.OveragePolicy(o.Policy), Cap: o.Cap, AtPeriodEnd: wire.OverageAtPeriodEnd(o.AtPeriodEnd)}
	}
	if o := a.Overflow; o != nil {
		text, _ := o.Price.MarshalJSON() // which never fails
		out.Overflow = &wire.Overflow{Meter: o.Meter, Price: text}
	}
	return out
}

// Gauge returns a gauge.
func Gauge(g *gauge.State) wire.Gauge {
	out := wire.Gauge{Meter: g.Meter, Subject: g.Subject, Value: g.Value, Limit: g.Limit, Remaining: g.Remaining(), Over: g.Over()}
	if !g.At.IsZero() {
		out.ChangedAt = g.At.UTC()
	}
	return out
}

// Terms returns the terms of a tenant.
func Terms(t *catalog.Terms) wire.Terms {
	return wire.Terms{
		EffectiveAt: t.EffectiveAt, Plan: t.Plan, Anchor: t.Anchor, Timezone: t.Timezone, Overrides: t.Overrides,
		Apply: wire.TermsApply(t.Apply), Prorate: t.Prorate, Usage: wire.TermsUsage(t.Usage), Reason: t.Reason,
	}
}

// Tenant returns a tenant.
func Tenant(t *catalog.Tenant) wire.Tenant {
	return wire.Tenant{
		Tenant: t.ID, Plan: t.Plan, Anchor: t.Anchor, Timezone: t.Timezone, Status: wire.TenantStatus(t.Status),
		Metadata: jsontext.Value(t.Metadata), Overrides: t.Overrides, Features: Features(t.Features), Version: t.Version, CreatedAt: t.CreatedAt,
		UpdatedAt: t.UpdatedAt,
	}
}

// TenantChange returns a change of a tenant, or what it would be.
func TenantChange(c *catalog.TenantChange, dryRun bool) wire.TenantChange {
	t := Tenant(&c.After)
	out := wire.TenantChange{
		Tenant: t.Tenant, Plan: t.Plan, Anchor: t.Anchor, Timezone: t.Timezone, Status: t.Status, Metadata: t.Metadata,
		Overrides: t.Overrides, Features: t.Features, Version: t.Version, CreatedAt: t.CreatedAt, UpdatedAt: t.UpdatedAt, Before: Tenant(&c.Before), DryRun: dryRun,
		Apply: wire.TenantChangeApply(c.Apply), Usage: wire.TenantChangeUsage(c.Usage),
	}
	if c.Apply != "" {
		out.Prorate = &c.Prorate
	}
	return out
}

// Block returns a block or an exemption.
func Block(b *block.Block) wire.Block {
	return wire.Block{
		Kind: wire.BlockKind(b.Kind), Value: b.Value, Tenant: b.Tenant, Action: wire.BlockAction(b.Action), ExpiresAt: b.ExpiresAt, Reason: b.Reason,
		CreatedAt: b.CreatedAt, UpdatedAt: b.UpdatedAt,
	}
}

// TenantWithBalance returns a tenant with how far it has used a meter, if that was asked.
func TenantWithBalance(i *tenantlist.Item) wire.Tenant {
	out := Tenant(&i.Tenant)
	if s := i.Balance; s != nil {
		out.Standing = &wire.Standing{Meter: s.Meter, Used: s.Used, Remaining: s.Remaining, Percent: s.Percent}
	}
	return out
}
