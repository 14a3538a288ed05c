package gate

import (
	"context"

	"github.com/quotasvc/quotasvc/internal/catalog/override"
)

// variant is a rule with the rate and burst of an override. It is stored in the field Compiled of the override.
type variant struct {
	of   *planRule
	rule *planRule // `of` with the override's rate and burst; `of` itself if they are not valid for it
}

// override replaces each element of rules for which an override is in force.
func (g *Gate) override(ctx context.Context, rules []*planRule, facts *tenantFacts, subject string) {
	if facts.overrides == nil || g.overrides == nil {
		return
	}
	sets, now := g.overrides.Of(ctx, facts.overrides, subject), g.now()
	for i, p := range rules {
		if p.compiled.Shared {
			continue
		}
		if o := sets.Rule(p.compiled.ID, p.perSubject, now); o != nil {
			rules[i] = p.with(o)
		}
	}
}

// overridden returns p with the override that is in force for a tenant and a subject. It returns p if no override is
// in force.
func (g *Gate) overridden(ctx context.Context, p *planRule, facts *tenantFacts, subject string) *planRule {
	rules := []*planRule{p}
	g.override(ctx, rules, facts, subject)
	return rules[0]
}

// with returns p with the rate and burst of o. It returns p itself if they are not valid for p. The result is
// compiled once for each override in memory.
func (p *planRule) with(o *override.InForce) *planRule {
	known, _ := o.Compiled.Load().(*variant)
	if known != nil && known.of == p {
		return known.rule
	}
	made := &variant{of: p, rule: p}
	if known != nil && known.of.limitRule == p.limitRule && known.rule != known.of { // the limit did not change
		made.rule = p.as(known.rule.limitRule)
	} else if r, err := compileRule(o.Apply(p.source)); err == nil {
		r.compiled.Metric, r.overridden = p.compiled.Metric, &o.Override
		made.rule = p.as(r)
	}
	o.Compiled.Store(made)
	return made.rule
}

// as returns a copy of p with the compiled limit r.
func (p *planRule) as(r *limitRule) *planRule {
	other := *p
	other.limitRule = r
	return &other
}
