package gate

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/quotasvc/quotasvc/internal/catalog"
	"github.com/quotasvc/quotasvc/internal/catalog/feature"
	"github.com/quotasvc/quotasvc/internal/gate/balances"
	"github.com/quotasvc/quotasvc/internal/gate/provision"
	"github.com/quotasvc/quotasvc/internal/kit/cowmap"
	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/kit/period"
	"github.com/quotasvc/quotasvc/internal/ledger"
)

// tenantFacts are the facts of a request's tenant from the catalogue. If the tenant does not exist, only unknown,
// rules and denials are set.
type tenantFacts struct {
	unknown   bool // the tenant does not exist
	isNew     bool // the tenant does not exist yet: its first use creates it, with this plan and these rules
	plan      string
	suspended bool
	features  feature.Set // features that the tenant overrides
	rules     *ruleSet
	sold      *catalog.Plan        // the version of the plan that is in force; nil: the snapshot lacks the plan
	zone      *time.Location       // time zone of the tenant's calendar; nil is UTC
	overrides *catalog.TenantFacts // the tenant, if it or its subjects have overrides of limits; else nil
	changedAt time.Time            // when the tenant's terms last changed; an older copy of a balance may be wrong
	denials   map[string]bool      // meters whose denials the ledger stores
}

// itemsOf returns a copy of items in which StoreDenial is set from the catalogue.
func (f *tenantFacts) itemsOf(items []ledger.Item) []ledger.Item {
	out := make([]ledger.Item, len(items))
	for i, it := range items {
		out[i] = ledger.Item{Meter: it.Meter, Amount: it.Amount, StoreDenial: f.denials[it.Meter]}
	}
	return out
}

// tenants looks up tenants in the catalogue. Each snapshot of the catalogue contains the compiled rules.
type tenants struct {
	catalog     *catalog.Catalog
	log         *slog.Logger
	forget      func(labels []string) // called with labels that no rule has any more; perhaps twice with the same label
	zones       period.Zones
	provisioner *provision.Provisioner

	removed []string // labels that only the previous snapshot had; only compile uses it
}

// compiledRules are the rules of one snapshot. They do not change. The rules of the next snapshot share unchanged
// parts with them.
type compiledRules struct {
	denials map[string]bool
	plans   map[string]*ruleSet // rule sets of plans with own limits

	// older has the rule sets of older versions of plans that are in force for some tenants.
	older map[catalog.PlanVersion]*ruleSet

	general *ruleSet         // rule set of other plans, and of tenants that do not exist
	labels  cowmap.Map[int]  // number of rules, by their label in metrics
	lost    []string         // labels of removed rules; other rules may still have some of them
	skipped map[string]error // errors of limits that this version cannot enforce
	counts  ruleCounts
}

func newTenants(c *catalog.Catalog, cfg Config, forget func(labels []string)) *tenants {
	t := &tenants{catalog: c, log: cfg.Log, forget: forget, provisioner: cfg.Provisioner}
	c.Compile(t.compile)
	return t
}

// rules returns the newest rules.
func (t *tenants) rules() *compiledRules { return t.catalog.Snapshot().Compiled.(*compiledRules) }

// facts returns the facts of a tenant from the catalogue. If the tenant cannot be looked up, it returns an
// *errcode.Error and the facts of a tenant that does not exist.
func (t *tenants) facts(ctx context.Context, tenant string) (tenantFacts, error) {
	snapshot := t.catalog.Snapshot()
	c := snapshot.Compiled.(*compiledRules)
	f := tenantFacts{denials: c.denials, rules: c.general}

	// The tenant. If it does not exist, its first use may create it.
	found, err := t.catalog.Tenant(ctx, tenant)
	switch {
	case errcode.Of(err) == errcode.TenantNotFound, errcode.Of(err) == errcode.InvalidArgument:
		plan, ok := t.provisioner.Plan(tenant)
		if !ok {
			f.unknown = true
			return f, nil
		}
		f.isNew = true
		f.plan, f.sold = plan.ID, plan
		f.rules = cmp.Or(c.plans[plan.ID], f.rules)
		return f, nil
	case err != nil:
		return f, unavailable("the tenant could not be looked up; this attempt did nothing", err)
	}

	// The tenant's own facts.
	f.plan = found.Plan
	f.suspended = found.Suspended
	f.features = found.Features
	f.changedAt = found.UpdatedAt
	if found.RuleOverrides || found.SubjectOverrides {
		overridden := found // a copy, so that only these tenants are allocated on the heap
		f.overrides = &overridden
	}
	if found.UpdatedAt.After(found.CreatedAt) {
		f.changedAt = found.UpdatedAt.Add(balances.TermsMargin)
	}
	if zone, err := t.zones.Parse(found.Timezone); err == nil { // else UTC: this host does not know the zone
		f.zone = zone
	}

	// The facts of its plan.
	f.sold = snapshot.Plan(found.Plan, found.PlanVersion)
	f.rules = c.rulesOf(snapshot, f.sold)
	f.changedAt = period.Later(f.changedAt, found.PlanSince)
	if newest := snapshot.Plans[found.Plan]; newest != nil {
		came := newest.CreatedAt
		if newest.AppliesNow() {
			came = came.Add(balances.TermsMargin)
		}
		f.changedAt = period.Later(f.changedAt, came)
	}
	return f, nil
}

// rulesOf returns the rules for the tenants that have a version of a plan.
func (c *compiledRules) rulesOf(snapshot *catalog.Snapshot, p *catalog.Plan) *ruleSet {
	switch {
	case p == nil:
		return c.general
	case p == snapshot.Plans[p.ID]:
		return cmp.Or(c.plans[p.ID], c.general)
	}
	return cmp.Or(c.older[catalog.PlanVersion{Plan: p.ID, Version: p.Version}], c.general)
}

// compile compiles a snapshot before the catalogue publishes it. Requests use the previous rules meanwhile; only a
// request that calls Catalog.CatchUp waits. Then compile removes the metrics of labels that the snapshot no longer
// has. It removes these metrics once more at the next change, because decisions under way may have created them
// again.
func (t *tenants) compile(snapshot, previous *catalog.Snapshot) any {
	c := compileRules(snapshot, previous)
	for rule, err := range c.skipped {
		t.log.Error("this version cannot enforce a limit", "rule", rule, "error", err)
	}
	if previous.Compiled != nil {
		present := func(label string) bool { return c.labels.Get(label) > 0 }
		removed := slices.DeleteFunc(c.lost, present)
		t.forget(slices.Concat(removed, slices.DeleteFunc(t.removed, present)))
		t.removed = removed
	}
	c.lost = nil
	return c
}

// compileRules compiles the rules of a snapshot. It reuses the rules of unchanged limits from the snapshot `before`,
// which may be nil. It skips the limits that it cannot enforce, and adds them to skipped. CheckLimit refuses such
// limits, so only a newer version of the service can have stored them.
func compileRules(snapshot, before *catalog.Snapshot) *compiledRules {
	var known *compiledRules
	if before != nil {
		known, _ = before.Compiled.(*compiledRules)
	}
	if known == nil {
		return compileAll(snapshot, &compiledRules{general: &ruleSet{general: &ruleIndex{}}})
	}
	if c := known.next(snapshot, before); c != nil {
		return c
	}
	return compileAll(snapshot, known)
}

// compileAll compiles all rules of a snapshot. It reuses the rules of unchanged limits from known.
func compileAll(snapshot *catalog.Snapshot, known *compiledRules) *compiledRules {
	c := &compiledRules{denials: denialsOf(snapshot), plans: map[string]*ruleSet{}, skipped: map[string]error{}}
	rules := make([]*limitRule, 0, len(snapshot.Limits))
	for i, l := range snapshot.Limits {
		cowmap.Yield(i)
		rules = c.compile(rules, l, known.general.general)
	}
	index := newGeneralRules(rules)
	c.general = newRuleSet(nil, index)
	change := &ruleChange{came: slices.Collect(index.each())}
	for i, p := range change.came {
		cowmap.Yield(i)
		p.label()
		c.noteLabel(p)
	}
	c.counts.change(&ruleIndex{}, index, change)
	for _, plan := range snapshot.Plans {
		c.compilePlan(plan, known)
	}
	c.compileOlder(snapshot, known)
	for label := range known.labels.All() {
		c.lost = append(c.lost, label)
	}
	return c
}

func denialsOf(snapshot *catalog.Snapshot) map[string]bool {
	denials := make(map[string]bool, len(snapshot.Meters))
	for name := range snapshot.Meters {
		denials[name] = snapshot.Meters[name].DenialReplay
	}
	return denials
}

// compilePlan compiles the limits of a plan. The general rules must be compiled before. It reuses the rules of
// unchanged limits from known.
func (c *compiledRules) compilePlan(plan *catalog.Plan, known *compiledRules) {
	if own := c.compileOwn(plan, known.plans[plan.ID]); len(own) > 0 {
		c.addSet(plan.ID, newRuleSet(own, c.general.general))
	}
}

// compileOlder compiles the limits of older versions of plans.
func (c *compiledRules) compileOlder(snapshot *catalog.Snapshot, known *compiledRules) {
	c.older = map[catalog.PlanVersion]*ruleSet{}
	for version, plan := range snapshot.Older {
		own := c.compileOwn(plan, known.older[version])
		if len(own) == 0 {
			continue
		}
		set := newRuleSet(own, c.general.general)
		for _, p := range set.own.own {
			p.label()
			c.noteLabel(p)
		}
		c.older[version] = set
	}
}

// compileOwn returns the compiled limits of a plan. It reuses those of the set `before`, which may be nil.
func (c *compiledRules) compileOwn(plan *catalog.Plan, before *ruleSet) []*limitRule {
	index := &ruleIndex{}
	if before != nil {
		index = before.own
	}
	own := make([]*limitRule, 0, len(plan.Limits))
	for i := range plan.Limits {
		own = c.compile(own, &plan.Limits[i], index)
	}
	return own
}

// compile appends the compiled rule of a limit to rules. It reuses the rule from the index `before` if the limit is
// unchanged.
func (c *compiledRules) compile(rules []*limitRule, l *catalog.Limit, before *ruleIndex) []*limitRule {
	if p := before.byID.Get(l.Rule); p != nil && p.source == l {
		return append(rules, p.limitRule)
	}
	r, err := compileRule(l)
	if err != nil {
		c.skipped[l.Rule] = err
		return rules
	}
	return append(rules, r)
}

// addSet adds the rule set of a plan, and the labels and samples of its rules.
func (c *compiledRules) addSet(plan string, set *ruleSet) {
	c.plans[plan] = set
	for _, p := range set.own.own {
		p.label()
		c.noteLabel(p)
		c.counts.nameSample(set.general, p, 1)
	}
}

// dropSet reverses addSet: it removes the labels and samples of a plan's rules.
func (c *compiledRules) dropSet(set *ruleSet) {
	for _, p := range set.own.own {
		c.unlabel(p)
		c.counts.nameSample(set.general, p, -1)
	}
}

// label sets the rule's label in metrics to the id of the last rule in its chain. So all rules that replace one rule
// for many tenants share one series, and no tenant is a label.
func (p *planRule) label() {
	if label := p.link.root.id; p.compiled.Metric != label {
		labelled := *p.limitRule
		labelled.compiled.Metric = label
		p.limitRule = &labelled
	}
}

func (c *compiledRules) noteLabel(p *planRule) {
	c.labels.Set(p.compiled.Metric, c.labels.Get(p.compiled.Metric)+1)
}

func (c *compiledRules) unlabel(p *planRule) {
	if n := c.labels.Get(p.compiled.Metric); n > 1 {
		c.labels.Set(p.compiled.Metric, n-1)
		return
	}
	c.labels.Delete(p.compiled.Metric)
	c.lost = append(c.lost, p.compiled.Metric)
}
