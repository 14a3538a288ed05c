package answers

import (
	"cmp"

	"github.com/quotasvc/quotasvc/client"
	"github.com/quotasvc/quotasvc/internal/catalog"
	"github.com/quotasvc/quotasvc/internal/catalog/block"
	"github.com/quotasvc/quotasvc/internal/catalog/feature"
	"github.com/quotasvc/quotasvc/internal/catalog/gauge"
	"github.com/quotasvc/quotasvc/internal/report/tenantlist"
)

// Meter returns a meter of the catalogue in the contract's type.
func Meter(m *catalog.Meter) client.Meter {
	return client.Meter{
		Meter: m.ID, Unit: m.Unit, Description: m.Description, Kind: client.MeterKind(m.Kind), DenialReplay: m.DenialReplay, Dimensions: append([]string{}, m.Dimensions...),
		CreatedAt: m.CreatedAt, UpdatedAt: m.UpdatedAt,
	}
}

// Plan returns a version of a plan in the contract's type.
func Plan(p *catalog.Plan) client.Plan {
	return client.Plan{
		Plan: p.ID, Version: p.Version, Allowances: Map(p.Allowances, allowance), Limits: Map(p.Limits, PlanLimit),
		CreatedAt: p.CreatedAt, Features: Features(p.Features), Apply: client.PlanApply(cmp.Or(p.Apply, string(client.PlanApplyNextPeriod))),
	}
}

// Features returns features in the contract's type. It returns nil if set is empty.
func Features(set feature.Set) client.Features {
	if len(set) == 0 {
		return nil
	}
	out := make(client.Features, len(set))
	for name, value := range set {
		out[name] = value
	}
	return out
}

func allowance(a *catalog.Allowance) client.Allowance {
	out := client.Allowance{
		Meter: a.Meter, Amount: a.Amount, Every: client.AllowanceEvery(a.Every), Anchor: client.AllowanceAnchor(a.Anchor), PerSubject: a.PerSubject,
		ExpiresInDays: a.ExpiresInDays, AlertAt: a.AlertAt,
	}
	if r := a.Rollover; r != nil {
		out.Rollover = &client.Rollover{Min: r.Min, Max: r.Max}
	}
	if o := a.Overage; o != nil {
		out.Overage = &client.Overage{Policy: client.OveragePolicy(o.Policy), Cap: o.Cap, AtPeriodEnd: client.OverageAtPeriodEnd(o.AtPeriodEnd)}
	}
	if o := a.Overflow; o != nil {
		out.Overflow = &client.Overflow{Meter: o.Meter, Price: client.PriceRatio{Units: o.Price.Units, Per: o.Price.Per}}
	}
	return out
}

// Gauge returns the state of a gauge in the contract's type.
func Gauge(g *gauge.State) client.Gauge {
	out := client.Gauge{Meter: g.Meter, Subject: g.Subject, Value: g.Value, Limit: g.Limit, Remaining: g.Remaining(), Over: g.Over()}
	if !g.At.IsZero() {
		out.ChangedAt = g.At.UTC()
	}
	return out
}

// Terms returns terms of a tenant in the contract's type.
func Terms(t *catalog.Terms) client.Terms {
	return client.Terms{
		EffectiveAt: t.EffectiveAt, Plan: t.Plan, Anchor: t.Anchor, Timezone: t.Timezone, Overrides: t.Overrides,
		Apply: client.TermsApply(t.Apply), Prorate: t.Prorate, Usage: client.TermsUsage(t.Usage), Reason: t.Reason,
	}
}

// pending returns a change that waits in the contract's type, or nil.
func pending(p *catalog.Pending, version int32) *client.PendingChange {
	if p == nil {
		return nil
	}
	return &client.PendingChange{
		From: p.From, Apply: client.PendingChangeApply(p.Apply), Plan: p.Plan, PlanVersion: version, Anchor: p.Anchor,
		Timezone: p.Timezone, Overrides: p.Overrides, Features: Features(p.Features), Prorate: p.Prorate,
		Usage: client.PendingChangeUsage(p.Usage), Reason: p.Reason,
	}
}

// Tenant returns a tenant in the contract's type.
func Tenant(t *catalog.Tenant, versions catalog.TenantVersions) client.Tenant {
	return client.Tenant{
		PlanVersion: versions.InForce, Pending: pending(t.Pending, versions.Pending),
		Tenant: t.ID, Plan: t.Plan, Anchor: t.Anchor, Timezone: t.Timezone, Status: client.TenantStatus(t.Status),
		Metadata: t.Metadata, Overrides: t.Overrides, Features: Features(t.Features), Version: t.Version, CreatedAt: t.CreatedAt,
		UpdatedAt: t.UpdatedAt,
	}
}

// TenantChange returns the change of a tenant in the contract's type. If dryRun is true, it is the change that the
// request would make.
func TenantChange(c *catalog.TenantChange, dryRun bool) client.TenantChange {
	t, before := Tenant(&c.After, c.AfterVersions), Tenant(&c.Before, c.BeforeVersions)
	out := client.TenantChange{
		PlanVersion: t.PlanVersion, Pending: t.Pending,
		Tenant: t.Tenant, Plan: t.Plan, Anchor: t.Anchor, Timezone: t.Timezone, Status: t.Status, Metadata: t.Metadata,
		Overrides: t.Overrides, Features: t.Features, Version: t.Version, CreatedAt: t.CreatedAt, UpdatedAt: t.UpdatedAt, Before: before, DryRun: dryRun,
		Apply: client.TenantChangeApply(c.Apply), Usage: client.TenantChangeUsage(c.Usage),
	}
	if c.Apply != "" {
		out.Prorate = &c.Prorate
	}
	return out
}

// Block returns a block or an exemption in the contract's type.
func Block(b *block.Block) client.Block {
	return client.Block{
		Kind: client.BlockKind(b.Kind), Value: b.Value, Tenant: b.Tenant, Action: client.BlockAction(b.Action), ExpiresAt: b.ExpiresAt, Reason: b.Reason,
		CreatedAt: b.CreatedAt, UpdatedAt: b.UpdatedAt,
	}
}

// TenantWithBalance returns an item of the tenant list. If the list is filtered or sorted by balances, the item also
// has the units of the balance that the list selected.
func TenantWithBalance(i *tenantlist.Item, versions *catalog.Versions) client.Tenant {
	out := Tenant(&i.Tenant, versions.Of(&i.Tenant))
	if s := i.Balance; s != nil {
		out.Standing = client.Standing{Meter: s.Meter, Used: s.Used, Remaining: s.Remaining, Percent: s.Percent}
	}
	return out
}
