package hints

import (
	"sync"
	"time"

	"github.com/quotasvc/quotasvc/internal/ledger"
)

// Default is the bound of each of the caches.
const Default = 50_000

// Hints is what earlier batches have learned. All methods may be called from any goroutine.
type Hints struct {
	most int // of each cache; a full one is emptied

	mu       sync.Mutex
	overflow map[ledger.BalanceKey][]ledger.BalanceKey // by the balance of an item: the balances of its overflow meter
	capped   map[ledger.BalanceKey]struct{}            // balances of items whose plan caps subjects

	termsMu    sync.RWMutex
	allowances map[termsKey]*ledger.Allowance
	settled    map[ledger.BalanceKey]Settlement
}

// Settlement says that the open period that began at Start was compared with the tenant's terms up to those that were made at Terms and
// apply at once, and is not ended by any of them. Neither ever changes.
type Settlement struct{ Start, Terms time.Time }

type termsKey struct {
	meter   string
	subject bool
	plan    string
	version int32
}

// New returns hints that know nothing. Each of their caches has up to most entries; 0 means Default.
func New(most int) *Hints {
	if most <= 0 {
		most = Default
	}
	return &Hints{
		most:     most,
		overflow: map[ledger.BalanceKey][]ledger.BalanceKey{}, capped: map[ledger.BalanceKey]struct{}{},
		allowances: map[termsKey]*ledger.Allowance{}, settled: map[ledger.BalanceKey]Settlement{},
	}
}

// Allowance returns what a plan version gives of the balance's meter, nil if that is not known.
func (h *Hints) Allowance(k ledger.BalanceKey, plan string, version int32) *ledger.Allowance {
	h.termsMu.RLock()
	defer h.termsMu.RUnlock()
	return h.allowances[termsKey{meter: k.Meter, subject: k.Subject != "", plan: plan, version: version}]
}

// KeepAllowance remembers what a plan version gives of the balance's meter.
func (h *Hints) KeepAllowance(k ledger.BalanceKey, plan string, version int32, a *ledger.Allowance) {
	h.termsMu.Lock()
	defer h.termsMu.Unlock()
	if len(h.allowances) >= h.most {
		clear(h.allowances)
	}
	h.allowances[termsKey{meter: k.Meter, subject: k.Subject != "", plan: plan, version: version}] = a
}

// IsSettled reports whether the balance's open period is known to take no notice of the tenant's terms.
func (h *Hints) IsSettled(k ledger.BalanceKey, s Settlement) bool {
	h.termsMu.RLock()
	defer h.termsMu.RUnlock()
	known, ok := h.settled[k]
	return ok && known.Start.Equal(s.Start) && known.Terms.Equal(s.Terms)
}

// Settle remembers that the balance's open period takes no notice of the tenant's terms.
func (h *Hints) Settle(k ledger.BalanceKey, s Settlement) {
	h.termsMu.Lock()
	defer h.termsMu.Unlock()
	if len(h.settled) >= h.most {
		clear(h.settled)
	}
	h.settled[k] = s
}

// spender is an operation that draws from balances: a debit or a hold.
type spender interface {
	Spends() (tenant, subject string, items []ledger.Item)
}

var _, _ spender = (*ledger.Debit)(nil), (*ledger.Hold)(nil)

// spending returns what an operation draws; no items for operations that draw nothing.
func spending(op ledger.Operation) (tenant, subject string, items []ledger.Item) {
	if s, ok := op.(spender); ok {
		return s.Spends()
	}
	return "", "", nil
}

// KeysFor returns the balances that calls are likely to need beside those that they name.
func (h *Hints) KeysFor(calls []*ledger.Call) []ledger.BalanceKey {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.overflow)+len(h.capped) == 0 {
		return nil
	}
	var out []ledger.BalanceKey
	for _, c := range calls {
		tenant, subject, items := spending(c.Op)
		for i := range items {
			own := ledger.BalanceKey{Tenant: tenant, Meter: items[i].Meter}
			out = append(out, h.overflow[own]...)
			if _, capped := h.capped[own]; capped && subject != "" {
				out = append(out, ledger.BalanceKey{Tenant: tenant, Meter: items[i].Meter, Subject: subject})
			}
		}
	}
	return out
}

// Learn records that calls needed keys that were not locked.
func (h *Hints) Learn(keys []ledger.BalanceKey, calls []*ledger.Call) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.overflow)+len(h.capped) >= h.most {
		clear(h.overflow)
		clear(h.capped)
	}
	for _, k := range keys {
		if k.Subject != "" {
			h.capped[ledger.BalanceKey{Tenant: k.Tenant, Meter: k.Meter}] = struct{}{}
			continue
		}
		for _, c := range calls {
			tenant, _, items := spending(c.Op)
			if len(items) == 1 && tenant == k.Tenant && items[0].Meter != k.Meter {
				h.overflow[ledger.BalanceKey{Tenant: tenant, Meter: items[0].Meter}] = []ledger.BalanceKey{k}
			}
		}
	}
}
