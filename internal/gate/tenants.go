package gate

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/quotasvc/quotasvc/internal/balances"
	"github.com/quotasvc/quotasvc/internal/catalog"
	"github.com/quotasvc/quotasvc/internal/ledger"
	"github.com/quotasvc/quotasvc/internal/period"
)

// tenantFacts are what the catalogue has about a request's tenant. For a tenant that does not exist only unknown, rules and denials
// are set.
type tenantFacts struct {
	unknown   bool // there is no such tenant
	plan      string
	suspended bool
	rules     *ruleSet
	zone      *time.Location    // the tenant's calendar; nil is UTC
	overrides *catalog.Standing // the tenant, if limits are overridden for it or for subjects of it; nil: none are
	changedAt time.Time         // when the tenant's terms last changed; an older copy of a balance may be wrong
	denials   map[string]bool   // meters whose denials the ledger stores
}

// itemsOf returns a copy of items in which StoreDenial is set from the catalogue.
func (f *tenantFacts) itemsOf(items []ledger.Item) []ledger.Item {
	out := make([]ledger.Item, len(items))
	for i, it := range items {
		out[i] = ledger.Item{Meter: it.Meter, Amount: it.Amount, StoreDenial: f.denials[it.Meter]}
	}
	return out
}

// tenants looks up tenants in the catalogue, whose snapshots have their rules compiled.
type tenants struct {
	catalog *catalog.Catalog
	log     *slog.Logger
	forget  func(labels []string) // is called with labels that no rule has any more; with the same one twice sometimes
	zones   period.Zones

	removed []string // labels that the previous snapshot lost; for compile only
}

// compiledRules are the rules of one snapshot.
type compiledRules struct {
	denials map[string]bool
	plans   map[string]*ruleSet           // of plans with limits of their own
	general *ruleSet                      // of other plans, and of tenants that do not exist
	rules   map[*catalog.Limit]*limitRule // of all limits that can be enforced
	labels  map[string]bool               // of all rules in metrics
	skipped map[string]error              // limits that this version cannot enforce
}

func newTenants(c *catalog.Catalog, log *slog.Logger, forget func(labels []string)) *tenants {
	t := &tenants{catalog: c, log: log, forget: forget}
	c.Compile(t.compile)
	return t
}

// rules returns the newest rules.
func (t *tenants) rules() *compiledRules { return t.catalog.Snapshot().Compiled.(*compiledRules) }

// facts returns what the catalogue has about tenant. It returns a *ledger.Error if the tenant cannot be looked up; the facts
// are then those of a tenant that does not exist.
func (t *tenants) facts(ctx context.Context, tenant string) (tenantFacts, error) {
	snapshot := t.catalog.Snapshot()
	c := snapshot.Compiled.(*compiledRules)
	f := tenantFacts{denials: c.denials, rules: c.general}
	found, err := t.catalog.Tenant(ctx, tenant)
	switch {
	case errors.Is(err, catalog.ErrNoTenant), errors.Is(err, catalog.ErrInvalid):
		f.unknown = true
		return f, nil
	case err != nil:
		return f, unavailable("the tenant could not be looked up; this attempt did nothing", err)
	}
	f.plan, f.suspended, f.changedAt = found.Plan, found.Suspended, found.UpdatedAt
	if found.RuleOverrides || found.SubjectOverrides {
		overridden := found // a copy on the heap
		f.overrides = &overridden
	}
	if found.UpdatedAt.After(found.CreatedAt) {
		f.changedAt = found.UpdatedAt.Add(balances.TermsSettle)
	}
	if zone, err := t.zones.Parse(found.Timezone); err == nil { // else UTC: this host's zone database lacks the zone
		f.zone = zone
	}
	if own := c.plans[found.Plan]; own != nil {
		f.rules = own
	}
	if plan, ok := snapshot.Plans[found.Plan]; ok {
		if plan.CreatedAt.After(f.changedAt) {
			f.changedAt = plan.CreatedAt
		}
	}
	return f, nil
}

// compile compiles a snapshot in the goroutine that reloads the catalogue, so no request waits for it. It forgets the labels that the snapshot
// no longer has. It forgets them once more at the next change, because decisions under way may have counted them again.
func (t *tenants) compile(snapshot, previous *catalog.Snapshot) any {
	before, _ := previous.Compiled.(*compiledRules)
	c := compileRules(snapshot, before)
	for rule, err := range c.skipped {
		t.log.Error("this version cannot enforce a limit", "rule", rule, "error", err)
	}
	if before != nil {
		removed := c.missing(before)
		t.forget(slices.Concat(removed, slices.DeleteFunc(t.removed, func(label string) bool { return c.labels[label] })))
		t.removed = removed
	}
	return c
}

// missing returns the labels of before that c does not have.
func (c *compiledRules) missing(before *compiledRules) []string {
	var labels []string
	for label := range before.labels {
		if !c.labels[label] {
			labels = append(labels, label)
		}
	}
	return labels
}

// compileRules compiles the rules of a snapshot. It takes over those that before, which may be nil, has of the same limits. It leaves out and
// notes the limits it cannot enforce. CheckLimit refuses such limits, so only a newer version of the service can have stored them.
func compileRules(snapshot *catalog.Snapshot, before *compiledRules) *compiledRules {
	if before == nil {
		before = &compiledRules{}
	}
	c := &compiledRules{
		denials: make(map[string]bool, len(snapshot.Meters)), plans: map[string]*ruleSet{}, rules: make(map[*catalog.Limit]*limitRule, len(snapshot.Limits)),
		labels: map[string]bool{}, skipped: map[string]error{},
	}
	for name := range snapshot.Meters {
		c.denials[name] = snapshot.Meters[name].DenialReplay
	}
	general := make([]*limitRule, 0, len(snapshot.Limits))
	for i, l := range snapshot.Limits {
		yield(i)
		general = c.compile(general, l, before)
	}
	index := newGeneralRules(general)
	c.label(index)
	c.general = newRuleSet(nil, index)
	for name, plan := range snapshot.Plans {
		if len(plan.Limits) == 0 {
			continue
		}
		own := make([]*limitRule, 0, len(plan.Limits))
		for i := range plan.Limits {
			own = c.compile(own, &plan.Limits[i], before)
		}
		set := newRuleSet(own, index)
		c.plans[name] = set
		c.label(set.own)
	}
	return c
}

// compile appends the rule of a limit.
func (c *compiledRules) compile(rules []*limitRule, l *catalog.Limit, before *compiledRules) []*limitRule {
	r := before.rules[l]
	if r == nil {
		var err error
		if r, err = compileRule(l); err != nil {
			c.skipped[l.Rule] = err
			return rules
		}
	}
	c.rules[l] = r
	return append(rules, r)
}

// label gives each rule of x the id of its chain's last rule as its label in metrics. So the rules that replace one for many tenants are one
// series, and no tenant is a label.
func (c *compiledRules) label(x *ruleIndex) {
	for i, p := range x.all {
		yield(i)
		label := p.root.compiled.ID
		if p.compiled.Metric != label {
			relabelled := *p.limitRule
			relabelled.compiled.Metric = label
			p.limitRule = &relabelled
			c.rules[p.source] = p.limitRule
		}
		if !c.labels[label] {
			c.labels[label] = true
		}
	}
}
