package pg

import (
	"errors"
	"slices"

	"github.com/quotasvc/quotasvc/internal/kit/bound"
	"github.com/quotasvc/quotasvc/internal/ledger"
)

// plan is what has to be locked or read to decide calls. It grows when a decision turns out to need more.
type plan struct {
	calls    []*ledger.Call
	ids      []ledger.OperationID // of the calls, each once
	targets  ledger.Targets
	plain    bool              // the calls have no targets
	audited  bool              // calls of administrators are among them
	named    []ledger.GrantKey // grants to which refunds may return units
	reissued []ledger.GrantKey // grants that refunds may issue under ids made from their keys
	located  *ledger.Located   // what was found of the targets; nil: not looked up yet

	more   []ledger.BalanceKey                  // balances that decisions asked for
	keys   []ledger.BalanceKey                  // all balances, sorted, each once
	demand map[ledger.BalanceKey]int64          // what may be drawn from each at most
	absent map[ledger.BalanceKey]ledger.Absence // balances that cannot exist
	all    bool                                 // read grants and terms of every balance

	bearing   bool // the last attempt was to make rows of balances
	rowsFirst bool // missing rows are made in a transaction of their own, because another transaction was making them too

	firstMonth, lastMonth ledger.Month // in which keys are looked up
	everyMonth            bool         // look keys up in every month: an entry with one of them was found where none was expected

	retries int                                  // transient failures in a row that it survives
	unknown bool                                 // an attempt's COMMIT was not answered, so that its calls may have been carried out
	locking locking                              // how its balances are locked
	extra   map[*ledger.Call][]ledger.BalanceKey // balances that a call's decision asked for beyond its demand
	held    []heldCall                           // calls that were taken out of calls
}

// locking says how the plan's balances are locked.
type locking int

const (
	lockBriefly   locking = iota // wait up to lockTimeout: the usual case
	lockFree                     // wait for none: calls on balances that another transaction has locked are held
	lockPatiently                // wait up to lockPatience; a call waits for its balances on the ledger's shelf
)

// keySet is a set of balances.
type keySet map[ledger.BalanceKey]struct{}

func setOf(keys []ledger.BalanceKey) keySet {
	s := make(keySet, len(keys))
	for _, k := range keys {
		s[k] = struct{}{}
	}
	return s
}

func (s keySet) has(k ledger.BalanceKey) bool {
	_, ok := s[k]
	return ok
}

// among returns those of keys that are in the set. It reuses keys.
func (s keySet) among(keys []ledger.BalanceKey) []ledger.BalanceKey {
	return slices.DeleteFunc(keys, func(k ledger.BalanceKey) bool { return !s.has(k) })
}

// heldCall is a call that was not decided because another transaction has locked balances that it needs.
type heldCall struct {
	call    *ledger.Call
	keys    []ledger.BalanceKey // the locked ones
	unknown bool                // an attempt may have been carried out
}

func newPlan(calls []*ledger.Call) *plan {
	p := &plan{calls: calls, retries: retriesMax}
	seen := make(map[ledger.OperationID]struct{}, len(calls))
	for _, c := range calls {
		c.Op.Targets(&p.targets)
		p.audited = p.audited || c.Origin != nil
		if _, dup := seen[c.ID]; !dup {
			seen[c.ID] = struct{}{}
			p.ids = append(p.ids, c.ID)
		}
	}
	p.plain = p.targets.None()
	return p
}

// arrange lists the balances to lock, in order, with what may be drawn from each.
func (p *plan) arrange() {
	p.demand = make(map[ledger.BalanceKey]int64, len(p.calls))
	for _, c := range p.calls {
		for _, d := range c.Op.Demand(p.located) {
			p.demand[d.BalanceKey] = bound.SaturatingAdd(p.demand[d.BalanceKey], d.Most)
		}
	}
	for _, k := range p.more {
		p.demand[k] = ledger.DemandAll
	}
	p.keys = p.keys[:0]
	for k := range p.demand {
		p.keys = append(p.keys, k)
	}
	slices.SortFunc(p.keys, ledger.CompareKeys)
}

// keysOf lists the balances that a call of the plan needs, as far as is known.
func (p *plan) keysOf(c *ledger.Call, learned *learnedCache) []ledger.BalanceKey {
	var keys []ledger.BalanceKey
	for _, d := range c.Op.Demand(p.located) {
		keys = append(keys, d.BalanceKey)
	}
	keys = append(keys, learned.keysFor([]*ledger.Call{c})...)
	return append(keys, p.extra[c]...)
}

// hold takes the calls that need locked balances out of the plan.
func (p *plan) hold(locked keySet, learned *learnedCache) {
	kept := make([]*ledger.Call, 0, len(p.calls))
	for _, c := range p.calls {
		waitsFor := locked.among(p.keysOf(c, learned))
		if len(waitsFor) == 0 {
			kept = append(kept, c)
			continue
		}
		p.held = append(p.held, heldCall{call: c, keys: waitsFor})
	}
	p.calls = kept
}

// holdAll takes all calls out of the plan. They wait for the balances they waited for before.
func (p *plan) holdAll() {
	for _, c := range p.calls {
		p.held = append(p.held, heldCall{call: c})
	}
	p.calls = nil
}

// errNotEnough is the error of a decision that was given everything and asks for more: a bug, or a clock that jumped.
var errNotEnough = errors.New("ledger: a decision lacks grants or terms that were read")

// errNoEnd is the error of decisions that ask for further balances without an end.
var errNoEnd = errors.New("ledger: a decision asks for further balances without an end")

// repeat calls round until it needs nothing more, at most limit times, and widens the plan by what each round lacked.
func (p *plan) repeat(limit int, round func() (ledger.Next, error)) error {
	for range limit {
		next, err := round()
		switch {
		case err != nil:
			return err
		case next.Done():
			return nil
		case next.All && p.all:
			return errNotEnough
		}
		p.more, p.all = append(p.more, next.More...), p.all || next.All
		if next.By != nil && len(next.More) > 0 {
			if p.extra == nil {
				p.extra = map[*ledger.Call][]ledger.BalanceKey{}
			}
			p.extra[next.By] = append(p.extra[next.By], next.More...)
		}
	}
	return errNoEnd
}
