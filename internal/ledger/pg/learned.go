package pg

import (
	"sync"
	"time"

	"github.com/quotasvc/quotasvc/internal/ledger"
)

// learnedDefault is the default of learnedCache.most.
const learnedDefault = 50_000

// learnedCache keeps data from earlier batches. It has the further balances that debits of a balance have needed, so
// that the next batch locks them at once. It also has the allowances of plan versions. A wrong balance costs an
// unnecessary lock, and a missing balance costs another transaction. Plan versions are immutable, so their allowances
// can be missing, but never wrong. All methods may be called from any goroutine.
type learnedCache struct {
	most int // bound of each cache; a full cache is emptied

	mu       sync.Mutex
	overflow map[ledger.BalanceKey][]ledger.BalanceKey // by the balance of an item: the balances of its overflow meter
	capped   map[ledger.BalanceKey]struct{}            // balances of items whose plan caps subjects

	termsMu    sync.RWMutex
	allowances map[allowanceKey]*ledger.Allowance
	unchanged  map[ledger.BalanceKey]unchangedPeriod
	newest     map[string]newestVersion // by plan
}

// unchangedPeriod records that no terms which apply at once change an open period before the instant `until`. The
// period began at the instant `start`. The terms were made by the instant `terms`, and the versions of plans by the
// instant `plans`. These terms, these versions and the start of the period never change.
type unchangedPeriod struct{ start, terms, plans, until time.Time }

// newestVersion is the newest of the versions of a plan that were made by an instant.
type newestVersion struct {
	version int32
	by      time.Time
}

type allowanceKey struct {
	meter   string
	subject bool
	plan    string
	version int32
}

// newLearnedCache returns an empty cache. Each of its caches has at most `most` entries; 0 means learnedDefault.
func newLearnedCache(most int) *learnedCache {
	if most <= 0 {
		most = learnedDefault
	}
	return &learnedCache{
		most:       most,
		overflow:   map[ledger.BalanceKey][]ledger.BalanceKey{},
		capped:     map[ledger.BalanceKey]struct{}{},
		allowances: map[allowanceKey]*ledger.Allowance{},
		unchanged:  map[ledger.BalanceKey]unchangedPeriod{},
		newest:     map[string]newestVersion{},
	}
}

// allowance returns the plan version's allowance of the balance's meter, nil if that is not known.
func (c *learnedCache) allowance(k ledger.BalanceKey, plan string, version int32) *ledger.Allowance {
	c.termsMu.RLock()
	defer c.termsMu.RUnlock()
	return c.allowances[allowanceKey{meter: k.Meter, subject: k.Subject != "", plan: plan, version: version}]
}

// keepAllowance keeps the plan version's allowance of the balance's meter.
func (c *learnedCache) keepAllowance(k ledger.BalanceKey, plan string, version int32, a *ledger.Allowance) {
	c.termsMu.Lock()
	defer c.termsMu.Unlock()
	if len(c.allowances) >= c.most {
		clear(c.allowances)
	}
	c.allowances[allowanceKey{meter: k.Meter, subject: k.Subject != "", plan: plan, version: version}] = a
}

// isUnchanged reports whether it is known that nothing made up to p.terms and p.plans changes the balance's open period
// by the instant p.until.
func (c *learnedCache) isUnchanged(k ledger.BalanceKey, p unchangedPeriod) bool {
	c.termsMu.RLock()
	defer c.termsMu.RUnlock()
	known, ok := c.unchanged[k]
	return ok && known.start.Equal(p.start) && known.terms.Equal(p.terms) && !known.plans.Before(p.plans) &&
		known.until.After(p.until)
}

// isNewest reports whether a version is known to be the newest of those of its plan that were made by an instant.
func (c *learnedCache) isNewest(plan string, version int32, by time.Time) bool {
	c.termsMu.RLock()
	defer c.termsMu.RUnlock()
	known := c.newest[plan]
	return known.version == version && !known.by.Before(by)
}

// keepNewest records the newest versions of plans. All versions that were made by the instant `by` were read.
func (c *learnedCache) keepNewest(plans map[string][]ledger.PlanVersion, by time.Time) {
	c.termsMu.Lock()
	defer c.termsMu.Unlock()
	for plan, versions := range plans {
		if c.newest[plan].by.After(by) {
			continue // read meanwhile, from a newer state
		}
		if len(c.newest) >= c.most {
			clear(c.newest)
		}
		c.newest[plan] = newestVersion{version: versions[len(versions)-1].Version, by: by}
	}
}

// markUnchanged records that nothing made up to p.terms and p.plans changes the balance's open period before p.until.
func (c *learnedCache) markUnchanged(k ledger.BalanceKey, p unchangedPeriod) {
	c.termsMu.Lock()
	defer c.termsMu.Unlock()
	if len(c.unchanged) >= c.most {
		clear(c.unchanged)
	}
	c.unchanged[k] = p
}

// spender is an operation that draws from balances: a debit or a hold.
type spender interface {
	Spends() (tenant, subject string, items []ledger.Item)
}

var _, _ spender = (*ledger.Debit)(nil), (*ledger.Hold)(nil)

// spending returns the items that an operation draws. It returns no items for operations that draw nothing.
func spending(op ledger.Operation) (tenant, subject string, items []ledger.Item) {
	if s, ok := op.(spender); ok {
		return s.Spends()
	}
	return "", "", nil
}

// keysFor returns the keys of balances that the calls do not name but probably need.
func (c *learnedCache) keysFor(calls []*ledger.Call) []ledger.BalanceKey {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.overflow)+len(c.capped) == 0 {
		return nil
	}
	var out []ledger.BalanceKey
	for _, call := range calls {
		tenant, subject, items := spending(call.Op)
		for i := range items {
			own := ledger.BalanceKey{Tenant: tenant, Meter: items[i].Meter}
			out = append(out, c.overflow[own]...)
			if _, capped := c.capped[own]; capped && subject != "" {
				out = append(out, ledger.BalanceKey{Tenant: tenant, Meter: items[i].Meter, Subject: subject})
			}
		}
	}
	return out
}

// addKeys records that calls needed balances that they do not name.
func (c *learnedCache) addKeys(needs []ledger.Need) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.overflow)+len(c.capped) >= c.most {
		clear(c.overflow)
		clear(c.capped)
	}
	for _, need := range needs {
		tenant, _, items := spending(need.By.Op)
		for _, k := range need.Keys {
			switch {
			case k.Subject != "":
				c.capped[ledger.BalanceKey{Tenant: k.Tenant, Meter: k.Meter}] = struct{}{}
			case len(items) == 1 && items[0].Meter != k.Meter:
				c.overflow[ledger.BalanceKey{Tenant: tenant, Meter: items[0].Meter}] = []ledger.BalanceKey{k}
			}
		}
	}
}
