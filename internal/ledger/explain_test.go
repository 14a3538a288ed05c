package ledger

import (
	"fmt"
	"hash/maphash"
	"slices"
	"strings"
	"time"
)

// observed is something that a client was told, and when: between two stamps of one counter, and at an instant of the model's time
// if the answer names it, else at one of two. expect says what the model would answer, on a copy that it may change.
type observed struct {
	what         string
	operation    string // '' = it is none
	asked, told  int64
	at           []time.Time
	answer       string
	stays        bool // what the model does for it stays
	expect       func(m *model) string
	alternatives map[string]bool // what the model said instead
}

// explanation looks for the orders in which what was observed makes sense: something that was told before another thing was asked
// comes before it. It is the search of Wing and Gong, with every state it ends in kept.
type explanation struct {
	all  []*observed
	seed maphash.Seed
	seen map[uint64]bool
	ends []*model
}

// explanations returns every model that able can have become.
func explanations(able []*model, all []*observed, seed maphash.Seed) ([]*model, error) {
	e := &explanation{all: all, seed: seed, seen: map[uint64]bool{}}
	for _, m := range able {
		e.search(m, 0)
	}
	if len(e.ends) > 0 {
		return e.ends, nil
	}
	var report strings.Builder
	for _, o := range all {
		fmt.Fprintf(&report, "\n  [%d-%d] %s\n    was told    %s", o.asked, o.told, o.what, o.answer)
		for text := range o.alternatives {
			fmt.Fprintf(&report, "\n    model says  %s", text)
		}
	}
	return nil, fmt.Errorf("no order of the model gives these answers:%s", report.String())
}

func (e *explanation) search(m *model, done uint64) {
	id := e.identify(m, done)
	if e.seen[id] {
		return
	}
	e.seen[id] = true
	if done == 1<<len(e.all)-1 {
		e.ends = append(e.ends, m)
		return
	}
	for i, o := range e.all {
		if done&(1<<i) != 0 || e.waits(o, done) {
			continue
		}
		for _, at := range o.at {
			work := m.clone()
			work.now = at
			got := o.expect(work)
			if got != o.answer {
				o.alternatives[got] = true
				continue
			}
			if !o.stays {
				work = m
			}
			e.search(work, done|1<<i)
		}
	}
}

// waits says whether something that is not done had been told before o was asked.
func (e *explanation) waits(o *observed, done uint64) bool {
	for j, p := range e.all {
		if done&(1<<j) == 0 && p.told < o.asked {
			return true
		}
	}
	return false
}

// identify tells models apart by everything that may still matter: balances, grants, holds, and what the operations drew.
func (e *explanation) identify(m *model, done uint64, operations ...string) uint64 {
	var h maphash.Hash
	h.SetSeed(e.seed)
	fmt.Fprint(&h, done, m.reserves)
	for _, k := range m.keys() {
		b := m.balances[k]
		fmt.Fprint(&h, k, b.opening, b.granted, b.refunded, b.used, b.expired, b.adjusted, b.overage, b.start.UnixMicro(), b.end.UnixMicro(), b.plan)
		grants := slices.Clone(b.grants)
		slices.SortFunc(grants, func(a, b modelGrant) int { return strings.Compare(a.id, b.id) })
		fmt.Fprint(&h, grants)
	}
	for _, o := range e.all {
		operations = append(operations, o.operation)
	}
	for _, id := range operations {
		if op := m.ops[id]; op != nil {
			fmt.Fprint(&h, op.body, op.parts)
		}
	}
	return h.Sum64()
}
