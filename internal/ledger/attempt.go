package ledger

import (
	"slices"
	"time"
)

// attempt is one run of a batch through one transaction.
type attempt struct {
	calls     []*call
	keys      []key // sorted, each once
	opKeys    []opKey
	refs      references
	found     found
	located   bool          // found is filled and keys are complete
	extra     []key         // balances that decisions asked for
	demand    map[key]int64 // what may be drawn at most
	until     time.Time     // of a view: advance no further; zero = to now
	force     bool          // read grants and terms of every balance
	absent    map[key]missing
	committed bool // RT2 was sent: a lost connection leaves the outcome unknown
}

func newAttempt(calls []*call) *attempt {
	a := &attempt{calls: calls, absent: map[key]missing{}, refs: referencesOf(calls)}
	seen := make(map[opKey]struct{}, len(calls))
	for _, c := range calls {
		if _, dup := seen[c.id]; !dup {
			seen[c.id] = struct{}{}
			a.opKeys = append(a.opKeys, c.id)
		}
	}
	return a
}

// plan lists the balances to lock, in order, with what may be drawn from them.
func (a *attempt) plan() {
	a.demand = make(map[key]int64, len(a.calls))
	for _, c := range a.calls {
		for _, n := range c.req.needs(&a.found) {
			a.demand[n.key] = saturatingAdd(a.demand[n.key], n.demand)
		}
	}
	for _, k := range a.extra {
		a.demand[k] = needAll
	}
	a.keys = a.keys[:0]
	for k := range a.demand {
		a.keys = append(a.keys, k)
	}
	slices.SortFunc(a.keys, compareKeys)
}

// namedGrantIDs lists the grant ids that clients have chosen.
func (a *attempt) namedGrantIDs() []grantKey {
	var out []grantKey
	for _, c := range a.calls {
		if g, ok := c.req.(*Grant); ok && g.GrantID != "" {
			out = append(out, grantKey{g.balance(), g.GrantID})
		}
	}
	return out
}

// grantIDs lists the grant ids the batch wants to use, also those made from keys.
func (a *attempt) grantIDs() []grantKey {
	var out []grantKey
	for _, c := range a.calls {
		switch r := c.req.(type) {
		case *Grant:
			out = append(out, grantKey{r.balance(), r.id()})
		case *Adjust:
			if r.Amount > 0 {
				out = append(out, grantKey{key{r.Tenant, r.Meter, r.Subject}, r.grantID()})
			}
		}
	}
	return out
}
