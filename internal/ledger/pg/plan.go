package pg

import (
	"errors"
	"slices"

	"github.com/quotasvc/quotasvc/internal/ledger"
)

// plan is what has to be locked or read to decide calls. It grows when a decision turns out to need more.
type plan struct {
	calls    []*ledger.Call
	ids      []ledger.OperationID // of the calls, each once
	targets  ledger.Targets
	plain    bool              // the calls have no targets
	named    []ledger.GrantKey // grants to which refunds may return units
	reissued []ledger.GrantKey // grants that refunds may issue under ids made from their keys
	located  *ledger.Located   // what was found of the targets; nil: not looked up yet

	more   []ledger.BalanceKey                  // balances that decisions asked for
	keys   []ledger.BalanceKey                  // all balances, sorted, each once
	demand map[ledger.BalanceKey]int64          // what may be drawn from each at most
	absent map[ledger.BalanceKey]ledger.Absence // balances that cannot exist
	all    bool                                 // read grants and terms of every balance

	everyMonth bool // look keys up in every month: an entry with one of them was found where none was expected
}

func newPlan(calls []*ledger.Call) *plan {
	p := &plan{calls: calls}
	seen := make(map[ledger.OperationID]struct{}, len(calls))
	for _, c := range calls {
		c.Op.Targets(&p.targets)
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
			p.demand[d.BalanceKey] = ledger.SaturatingAdd(p.demand[d.BalanceKey], d.Most)
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
	}
	return errNoEnd
}
