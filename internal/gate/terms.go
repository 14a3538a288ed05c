package gate

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quotasvc/quotasvc/internal/catalog"
	"github.com/quotasvc/quotasvc/internal/ledger"
	"github.com/quotasvc/quotasvc/internal/period"
)

// facts are what the catalogue knows about a request's tenant. For a tenant that does not exist they are empty: to say so is
// left to the ledger.
type facts struct {
	plan      string
	suspended bool
	rules     *ruleSet
	zone      *time.Location  // the tenant's calendar; nil is UTC
	changedAt time.Time       // when the tenant's terms changed last; older copies may be wrong
	denials   map[string]bool // meters whose denials are stored
}

// itemsOf returns items with what the catalogue says of their meters: whether denials are stored under their key.
func (f *facts) itemsOf(items []ledger.Item) []ledger.Item {
	out := make([]ledger.Item, len(items))
	for i, it := range items {
		out[i] = ledger.Item{Meter: it.Meter, Amount: it.Amount, StoreDenial: f.denials[it.Meter]}
	}
	return out
}

// terms reads facts from the catalogue. It compiles a snapshot's rules once.
type terms struct {
	catalog *catalog.Catalog
	log     *slog.Logger
	forget  func(rules []string) // is told of rules that are no more, perhaps more than once
	zones   period.Zones

	mu      sync.Mutex // held while compiling
	gone    []string   // with the snapshot before: what was under way then may have counted them again
	current atomic.Pointer[compiledTerms]
}

// compiledTerms are the rules of one snapshot.
type compiledTerms struct {
	snapshot *catalog.Snapshot
	denials  map[string]bool
	plans    map[string]*ruleSet // of plans with limits of their own
	general  *ruleSet            // of all others, and of tenants nobody knows
	ids      map[string]bool     // of all rules
}

func newTerms(c *catalog.Catalog, log *slog.Logger, forget func(rules []string)) *terms {
	return &terms{catalog: c, log: log, forget: forget}
}

// of returns what is known about tenant. The error is a *ledger.Error: whether the tenant is suspended could not be found
// out. The facts then are those of a tenant nobody knows.
func (t *terms) of(ctx context.Context, tenant string) (facts, error) {
	snapshot := t.catalog.Snapshot()
	c := t.current.Load()
	if c == nil || c.snapshot != snapshot {
		c = t.compile(snapshot)
	}
	f := facts{denials: c.denials, rules: c.general}
	known, err := t.catalog.Tenant(ctx, tenant)
	switch {
	case errors.Is(err, catalog.ErrNoTenant), errors.Is(err, catalog.ErrInvalid):
		return f, nil
	case err != nil:
		return f, unavailable("the tenant could not be looked up; nothing was done", err)
	}
	f.plan, f.suspended, f.changedAt = known.Plan, known.Suspended(), known.UpdatedAt
	if zone, err := t.zones.Parse(known.Timezone); err == nil { // else this host's zone database is older: UTC
		f.zone = zone
	}
	if own := c.plans[known.Plan]; own != nil {
		f.rules = own
	}
	if plan, ok := snapshot.Plans[known.Plan]; ok {
		if plan.CreatedAt.After(f.changedAt) {
			f.changedAt = plan.CreatedAt
		}
	}
	return f, nil
}

// compile makes snapshot the current one.
func (t *terms) compile(snapshot *catalog.Snapshot) *compiledTerms {
	t.mu.Lock()
	defer t.mu.Unlock()
	if c := t.current.Load(); c != nil && c.snapshot == snapshot {
		return c
	}
	c := compileTerms(snapshot, func(rule string, err error) {
		t.log.Error("limit cannot be enforced by this version", "rule", rule, "error", err)
	})
	if before := t.current.Swap(c); before != nil {
		gone := c.lacks(before)
		t.forget(slices.Concat(gone, slices.DeleteFunc(t.gone, func(rule string) bool { return c.ids[rule] })))
		t.gone = gone
	}
	return c
}

// lacks lists the rules of before that are not in c.
func (c *compiledTerms) lacks(before *compiledTerms) []string {
	var gone []string
	for id := range before.ids {
		if !c.ids[id] {
			gone = append(gone, id)
		}
	}
	return gone
}

// compileTerms compiles a snapshot. It leaves out what it cannot enforce and says so to skipped. It happens when a newer
// version wrote the catalogue: CheckLimit keeps such limits out otherwise.
func compileTerms(snapshot *catalog.Snapshot, skipped func(rule string, err error)) *compiledTerms {
	c := &compiledTerms{snapshot: snapshot, denials: make(map[string]bool, len(snapshot.Meters)), plans: map[string]*ruleSet{}, ids: map[string]bool{}}
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
