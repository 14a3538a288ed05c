package model

import (
	"fmt"
	"hash/maphash"
	"maps"
	"slices"
	"strings"
	"time"
)

// Observation is an answer that a client got. AskedAt is the value of a counter when the client first sent the request.
// AnsweredAt is the value when the client had the answer.
type Observation struct {
	What                string
	Operation           string // key of the operation; empty: there is none
	AskedAt, AnsweredAt int64
	At                  []time.Time // instants, in the model's time, at which the request may have been decided
	Answer              string
	Stays               bool                  // the change that Expect makes to a model is kept
	Expect              func(m *Model) string // returns the model's answer; m is a copy that it may change
	alternatives        map[string]bool       // answers of models that differ from Answer
}

// search looks for orders of the observations in which a model gives the same answers. If an observation was answered
// before another observation was sent, the answered observation comes first. This is the search of Wing and Gong. It
// keeps every model at the end of such an order.
type search struct {
	all  []*Observation
	seed maphash.Seed
	seen map[uint64]bool
	ends []*Model
}

// Explain applies the observations to each model in able, in every possible order. It returns the models after all
// orders that give the observed answers. It returns an error if there is no such order.
func Explain(able []*Model, all []*Observation, seed maphash.Seed) ([]*Model, error) {
	s := &search{all: all, seed: seed, seen: map[uint64]bool{}}
	for _, m := range able {
		s.step(m, 0)
	}
	if len(s.ends) > 0 {
		return s.ends, nil
	}
	var report strings.Builder
	for _, o := range all {
		fmt.Fprintf(&report, "\n  [%d-%d] %s\n    ledger %s", o.AskedAt, o.AnsweredAt, o.What, o.Answer)
		for text := range o.alternatives {
			fmt.Fprintf(&report, "\n    model  %s", text)
		}
	}
	return nil, fmt.Errorf("the model gives these answers in no order:%s", report.String())
}

// step tries every observation that can come next. The set `done` has a bit for each observation that m has answered.
func (s *search) step(m *Model, done uint64) {
	id := s.identify(m, done)
	if s.seen[id] {
		return
	}
	s.seen[id] = true
	if done == 1<<len(s.all)-1 {
		s.ends = append(s.ends, m)
		return
	}
	for i, o := range s.all {
		if done&(1<<i) != 0 || s.waits(o, done) {
			continue
		}
		for _, at := range o.At {
			work := m.clone()
			work.Now = at
			if got := o.Expect(work); got != o.Answer {
				o.differs(got)
				continue
			}
			if !o.Stays {
				work = m
			}
			s.step(work, done|1<<i)
		}
	}
}

func (o *Observation) differs(answer string) {
	if o.alternatives == nil {
		o.alternatives = map[string]bool{}
	}
	o.alternatives[answer] = true
}

// waits reports whether o must come later: another observation is not in the set `done`, and it was answered before o
// was sent.
func (s *search) waits(o *Observation, done uint64) bool {
	for j, p := range s.all {
		if done&(1<<j) == 0 && p.AnsweredAt < o.AskedAt {
			return true
		}
	}
	return false
}

// identify returns a hash of the set `done` and of everything in m that can matter to the observations.
func (s *search) identify(m *Model, done uint64) uint64 {
	operations := make([]string, len(s.all))
	for i, o := range s.all {
		operations[i] = o.Operation
	}
	return m.hash(s.seed, done, operations)
}

// Hash returns a hash of everything in m that can matter to later requests.
func (m *Model) Hash(seed maphash.Seed) uint64 {
	return m.hash(seed, 0, slices.Sorted(maps.Keys(m.ops)))
}

func (m *Model) hash(seed maphash.Seed, done uint64, operations []string) uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	fmt.Fprint(&h, done, m.reserves)
	for _, k := range m.Keys() {
		b := m.balances[k]
		fmt.Fprint(&h, k, b.opening, b.granted, b.amended, b.refunded, b.used, b.expired, b.adjusted, b.overage, b.overflow, b.start.UnixMicro(), b.end.UnixMicro(), b.plan,
			b.owed, b.paid, b.paidByRollover, b.carried, b.carriedFrom.UnixMicro(), b.agreed.UnixMicro(), b.allowances, b.uses, b.excess)
		grants := slices.Clone(b.grants)
		slices.SortFunc(grants, func(a, b grant) int { return strings.Compare(a.id, b.id) })
		fmt.Fprint(&h, grants)
	}
	for _, id := range slices.Sorted(maps.Keys(m.holds)) {
		fmt.Fprint(&h, id, m.holds[id].captured, m.holds[id].tabs)
	}
	for _, id := range operations {
		if op := m.ops[id]; op != nil {
			fmt.Fprint(&h, op.body, op.parts, op.groups)
		}
	}
	return h.Sum64()
}
