package gate

import (
	"context"

	"github.com/quotasvc/quotasvc/internal/catalog/feature"
	"github.com/quotasvc/quotasvc/internal/kit/errcode"
)

// Features returns a tenant's plan, all features that the tenant has now, and the features that it overrides. The
// error is an *errcode.Error.
func (g *Gate) Features(ctx context.Context, tenant string) (plan string, all, own feature.Set, err error) {
	facts, err := g.tenants.facts(ctx, tenant)
	switch {
	case err != nil:
		return "", nil, nil, err
	case facts.unknown:
		return "", nil, nil, noTenant(tenant)
	}
	return facts.plan, feature.Of(facts.planFeatures(), facts.features), facts.features, nil
}

// checkFeature reports, from memory, whether the tenant may use the feature of req. The answer has neither limits nor
// balances: no backend is queried.
func (g *Gate) checkFeature(ctx context.Context, req *Request) (Check, error) {
	out := Check{Item: -1, Source: SourceLocal, AsOf: g.now().UTC()}
	if out.Blocked, _ = g.blocked(req); out.Blocked != nil {
		out.Code = CodeForbidden
		return out, nil
	}
	facts, err := g.tenants.facts(ctx, req.Tenant)
	switch {
	case err != nil:
		return out, err
	case facts.unknown:
		return out, noTenant(req.Tenant)
	}
	if refusal := g.featureRefusal(req, &facts); refusal != nil {
		out.Code = refusal.Code
		return out, nil
	}
	out.Allowed = true
	return out, nil
}

// featureRefusal returns the reason why a tenant may not use the feature of req. It returns nil if the tenant may use
// it. The tenant's present plan and overrides decide.
func (g *Gate) featureRefusal(req *Request, facts *tenantFacts) *errcode.Error {
	switch {
	case facts.unknown:
		return noTenant(req.Tenant)
	case facts.suspended:
		return errcode.Errorf(errcode.TenantSuspended, "tenant", "tenant %q is suspended", req.Tenant)
	case !feature.Lookup(facts.planFeatures(), facts.features, req.Feature).Granted():
		const detail = "the plan of tenant %q does not grant %q"
		return errcode.Errorf(CodeFeatureNotInPlan, "feature", detail, req.Tenant, req.Feature)
	}
	return nil
}

// planFeatures returns the features of the version of the tenant's plan that is in force.
func (f *tenantFacts) planFeatures() feature.Set {
	if f.sold != nil {
		return f.sold.Features
	}
	return nil
}
