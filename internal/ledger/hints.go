package ledger

import "sync"

// hintsMax bounds the caches of this file; a full one starts anew.
const hintsMax = 50_000

// termsCache keeps what immutable plan versions say of a balance's meter. It can never be wrong, only incomplete.
type termsCache struct {
	mu sync.RWMutex
	of map[termsKey]*allowance
}

type termsKey struct {
	meter   string
	subject bool
	plan    string
	version int32
}

func newTermsCache() *termsCache { return &termsCache{of: map[termsKey]*allowance{}} }

func keyOfTerms(k key, plan string, version int32) termsKey {
	return termsKey{meter: k.Meter, subject: k.Subject != "", plan: plan, version: version}
}

func (c *termsCache) get(k key, plan string, version int32) *allowance {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.of[keyOfTerms(k, plan, version)]
}

func (c *termsCache) put(k key, plan string, version int32, a *allowance) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.of) >= hintsMax {
		clear(c.of)
	}
	c.of[keyOfTerms(k, plan, version)] = a
}

// hints remembers which further balances debits of a balance needed, so that the next batch locks them at once. A wrong hint
// costs a lock that was not needed; a missing one, a second round.
type hints struct {
	mu       sync.Mutex
	overflow map[key][]key    // of a tenant's own balance: the overflow meters' balances
	capped   map[key]struct{} // own balances whose plan caps subjects
}

func newHints() *hints { return &hints{overflow: map[key][]key{}, capped: map[key]struct{}{}} }

// spending tells the meters and the subject of a request that draws; nil items for all others.
func spending(r request) (tenant, subject string, items []Item) {
	switch req := r.(type) {
	case *Debit:
		return req.Tenant, req.Subject, req.Items
	case *Hold:
		return req.Tenant, req.Subject, req.Items
	}
	return "", "", nil
}

func (h *hints) keysFor(calls []*call) []key {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.overflow)+len(h.capped) == 0 {
		return nil
	}
	var out []key
	for _, c := range calls {
		tenant, subject, items := spending(c.req)
		for i := range items {
			own := key{tenant, items[i].Meter, ""}
			out = append(out, h.overflow[own]...)
			if _, capped := h.capped[own]; capped && subject != "" {
				out = append(out, key{tenant, items[i].Meter, subject})
			}
		}
	}
	return out
}

// learn notes that calls needed keys which were not locked.
func (h *hints) learn(keys []key, calls []*call) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.overflow)+len(h.capped) >= hintsMax {
		clear(h.overflow)
		clear(h.capped)
	}
	for _, k := range keys {
		if k.Subject != "" {
			h.capped[key{k.Tenant, k.Meter, ""}] = struct{}{}
			continue
		}
		for _, c := range calls {
			tenant, _, items := spending(c.req)
			if len(items) == 1 && tenant == k.Tenant && items[0].Meter != k.Meter {
				h.overflow[key{tenant, items[0].Meter, ""}] = []key{k}
			}
		}
	}
}
