package gate

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
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
	zone      *time.Location  // the tenant's calendar; nil is UTC
	changedAt time.Time       // when the tenant's terms last changed; an older copy of a balance may be wrong
	denials   map[string]bool // meters whose denials the ledger stores
}

// itemsOf returns a copy of items in which StoreDenial is set from the catalogue.
func (f *tenantFacts) itemsOf(items []ledger.Item) []ledger.Item {
	out := make([]ledger.Item, len(items))
	for i, it := range items {
		out[i] = ledger.Item{Meter: it.Meter, Amount: it.Amount, StoreDenial: f.denials[it.Meter]}
	}
	return out
}

// tenants looks up tenants in the catalogue, and compiles the rules of each catalogue snapshot once.
type tenants struct {
	catalog *catalog.Catalog
	log     *slog.Logger
	forget  func(rules []string) // is called with the ids of deleted rules; with the same id twice sometimes
	zones   period.Zones

	mu      sync.Mutex // held while compiling
	removed []string   // rules deleted by the previous snapshot
	current atomic.Pointer[compiledRules]
}

// compiledRules are the rules of one snapshot.
type compiledRules struct {
	snapshot *catalog.Snapshot
	denials  map[string]bool
	plans    map[string]*ruleSet // of plans with limits of their own
	general  *ruleSet            // of other plans, and of tenants that do not exist
	ids      map[string]bool     // of all rules
}

func newTenants(c *catalog.Catalog, log *slog.Logger, forget func(rules []string)) *tenants {
	return &tenants{catalog: c, log: log, forget: forget}
}

// facts returns what the catalogue has about tenant. It returns a *ledger.Error if the tenant cannot be looked up; the facts
// are then those of a tenant that does not exist.
func (t *tenants) facts(ctx context.Context, tenant string) (tenantFacts, error) {
	snapshot := t.catalog.Snapshot()
	c := t.current.Load()
	if c == nil || c.snapshot != snapshot {
		c = t.compile(snapshot)
	}
	f := tenantFacts{denials: c.denials, rules: c.general}
	found, err := t.catalog.Tenant(ctx, tenant)
	switch {
	case errors.Is(err, catalog.ErrNoTenant), errors.Is(err, catalog.ErrInvalid):
		f.unknown = true
		return f, nil
	case err != nil:
		return f, unavailable("the tenant could not be looked up; this attempt did nothing", err)
	}
	f.plan, f.suspended, f.changedAt = found.Plan, found.Suspended(), found.UpdatedAt
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

// compile compiles snapshot, makes it the current one and forgets the rules it no longer has. It forgets them once more at
// the next change, because decisions under way may have counted them again.
func (t *tenants) compile(snapshot *catalog.Snapshot) *compiledRules {
	t.mu.Lock()
	defer t.mu.Unlock()
	if c := t.current.Load(); c != nil && c.snapshot == snapshot {
		return c
	}
	c := compileRules(snapshot, func(rule string, err error) {
		t.log.Error("this version cannot enforce a limit", "rule", rule, "error", err)
	})
	if before := t.current.Swap(c); before != nil {
		removed := c.missing(before)
		t.forget(slices.Concat(removed, slices.DeleteFunc(t.removed, func(rule string) bool { return c.ids[rule] })))
		t.removed = removed
	}
	return c
}

// missing returns the rules of before that c does not have.
func (c *compiledRules) missing(before *compiledRules) []string {
	var ids []string
	for id := range before.ids {
		if !c.ids[id] {
			ids = append(ids, id)
		}
	}
	return ids
}

// compileRules compiles the rules of a snapshot. It passes the limits it cannot enforce to skipped and leaves them out.
// CheckLimit refuses such limits, so only a newer version of the service can have stored them.
func compileRules(snapshot *catalog.Snapshot, skipped func(rule string, err error)) *compiledRules {
	c := &compiledRules{snapshot: snapshot, denials: make(map[string]bool, len(snapshot.Meters)), plans: map[string]*ruleSet{}, ids: map[string]bool{}}
	for name := range snapshot.Meters {
		c.denials[name] = snapshot.Meters[name].DenialReplay
	}
	compile := func(limits []catalog.Limit) []*limitRule {
		rules := make([]*limitRule, 0, len(limits))
		for i := range limits {
			r, err := compileRule(&limits[i])
			if err != nil {
				skipped(limits[i].Rule, err)
				continue
			}
			rules = append(rules, r)
			c.ids[r.compiled.ID] = true
		}
		return rules
	}
	general := compile(snapshot.Limits)
	c.general = newRuleSet(nil, general)
	for name, plan := range snapshot.Plans {
		if len(plan.Limits) > 0 {
			c.plans[name] = newRuleSet(compile(plan.Limits), general)
		}
	}
	return c
}
