package pg

import (
	"errors"
	"slices"

	"github.com/quotasvc/quotasvc/internal/kit/bound"
	"github.com/quotasvc/quotasvc/internal/ledger"
)

// plan lists the rows that must be locked or read to decide the calls of a batch, and has the state of the batch. It
// grows when a decision needs more rows.
type plan struct {
	calls    []*ledger.Call
	ids      []ledger.OperationID // ids of the calls, each once
	targets  ledger.Targets
	named    []ledger.GrantKey // grants to which refunds may return units
	reissued []ledger.GrantKey // grants that refunds may issue under ids made from their keys
	refunded []ledger.HoldKey  // holds of captures to be refunded, if their price is not a whole number
	located  *ledger.Located   // the rows found for the targets; nil: not looked up yet

	likely []ledger.BalanceKey                  // balances that such calls have needed before
	more   []ledger.BalanceKey                  // balances that decisions requested
	shown  bool                                 // a client reads the balances: their overflow is needed
	keys   []ledger.BalanceKey                  // all balances, sorted, each once
	demand map[ledger.BalanceKey]int64          // the most units that may be drawn from each balance
	absent map[ledger.BalanceKey]ledger.Absence // balances that cannot exist

	state  state
	reads  reads
	search search

	firstMonth, lastMonth ledger.Month // months of the latest search in recent months

	retries     int  // transient failures in a row after which the batch still runs again
	mayBeStored bool // an attempt's COMMIT was not answered, so that its calls may have been carried out

	extra  map[*ledger.Call][]ledger.BalanceKey // balances that a call's decision requested beyond its demand
	parked []parkedCall                         // calls that were removed from the field calls
}

// state decides how the next attempt locks balances and creates missing rows. The table in doc.go shows what changes
// it.
type state int

const (
	// stateUsual waits up to lockTimeout for locks, and creates missing rows in the transaction that uses them.
	stateUsual state = iota
	// stateRowsFirst waits up to lockTimeout, and creates missing rows in an earlier transaction. The states below
	// create missing rows in the same way.
	stateRowsFirst
	// stateSkipLocked waits for no row. Calls on balances that another transaction has locked are parked.
	stateSkipLocked
	// stateWaitLong waits up to lockPatience. It is for calls that were parked.
	stateWaitLong
)

// reads selects the balances whose grants and terms an attempt reads.
type reads int

const (
	readNeeded reads = iota // balances whose rows show that the decision needs grants or terms
	readAll                 // all balances: a decision needed more than the rows show
)

// search selects the months in which an attempt looks for the entries that are stored under the calls' keys.
type search int

const (
	searchRecent     search = iota // the months in which a remembered key can be
	searchEveryMonth               // all months: an entry was found where none was expected
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

// among returns the keys that are in the set. It overwrites the slice keys.
func (s keySet) among(keys []ledger.BalanceKey) []ledger.BalanceKey {
	return slices.DeleteFunc(keys, func(k ledger.BalanceKey) bool { return !s.has(k) })
}

// parkedCall is a call that was not decided because another transaction has locked balances that it needs.
type parkedCall struct {
	call        *ledger.Call
	keys        []ledger.BalanceKey // the locked balances
	mayBeStored bool                // an attempt may have carried out the call
}

func newPlan(calls []*ledger.Call) *plan {
	p := &plan{calls: calls, retries: retriesMax}
	seen := make(map[ledger.OperationID]struct{}, len(calls))
	for _, c := range calls {
		c.Op.Targets(&p.targets)
		if _, dup := seen[c.ID]; !dup {
			seen[c.ID] = struct{}{}
			p.ids = append(p.ids, c.ID)
		}
	}
	return p
}

// arrange lists the balances to lock, in order, with the most that may be drawn from each.
func (p *plan) arrange() {
	p.demand = make(map[ledger.BalanceKey]int64, len(p.calls))
	for _, c := range p.calls {
		for _, d := range c.Op.Demand(p.located) {
			sum := bound.SaturatingAdd(p.demand[d.BalanceKey], d.Most)
			p.demand[d.BalanceKey] = max(d.Most, min(sum, ledger.DemandAll))
		}
	}
	for _, k := range p.likely {
		p.demand[k] = ledger.DemandAll
	}
	for _, k := range p.more {
		p.demand[k] = ledger.DemandWhole
	}
	p.keys = p.keys[:0]
	for k := range p.demand {
		p.keys = append(p.keys, k)
	}
	slices.SortFunc(p.keys, ledger.CompareKeys)
}

// locate sets the rows that were found for the targets, and what follows from them.
func (p *plan) locate(found *ledger.Located) {
	p.located, p.named, p.refunded = found, found.NamedGrants(), found.RefundedHolds()
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

// park takes the calls that need locked balances out of the plan.
func (p *plan) park(locked keySet, learned *learnedCache) {
	runnable := make([]*ledger.Call, 0, len(p.calls))
	for _, c := range p.calls {
		waitsFor := locked.among(p.keysOf(c, learned))
		if len(waitsFor) == 0 {
			runnable = append(runnable, c)
			continue
		}
		p.parked = append(p.parked, parkedCall{call: c, keys: waitsFor, mayBeStored: p.mayBeStored})
	}
	p.calls = runnable
}

// parkAll takes all calls out of the plan. These calls wait for the balances that they waited for before.
func (p *plan) parkAll() {
	for _, c := range p.calls {
		p.parked = append(p.parked, parkedCall{call: c, mayBeStored: p.mayBeStored})
	}
	p.calls = nil
}

// errNotEnough is the error of a decision that has all data and requests more: a bug, or a clock that jumped.
var errNotEnough = errors.New("ledger: a decision lacks grants or terms that were read")

// errNoEnd is the error of decisions that request further balances without an end.
var errNoEnd = errors.New("ledger: a decision asks for further balances without an end")

// repeat calls the function `round` until the decisions need no more rows, but at most `limit` times. After each call,
// it adds to the plan the rows that the decisions lacked.
func (p *plan) repeat(limit int, round func() (ledger.Next, error)) error {
	for range limit {
		next, err := round()
		switch {
		case err != nil:
			return err
		case next.Done():
			return nil
		case next.All && p.reads == readAll:
			return errNotEnough
		}
		if next.All {
			p.reads = readAll
		}
		p.more = append(p.more, next.Keys()...)
		for _, need := range next.More {
			if p.extra == nil {
				p.extra = map[*ledger.Call][]ledger.BalanceKey{}
			}
			p.extra[need.By] = append(p.extra[need.By], need.Keys...)
		}
	}
	return errNoEnd
}
