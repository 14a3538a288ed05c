package ledger

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"pgregory.net/rapid"
)

// patience is how long a client asks for one answer.
const patience = 60 * time.Second

// question is what one client asks, of one member of the fleet first, and of any until it is answered for good.
type question struct {
	*sent  // nil for reads
	what   string
	first  int // member
	ask    func(l *Ledger) told
	expect func(m *model) string

	asked   int64 // when it was asked for the first time; 0 = not yet
	silent  bool  // an attempt was not answered: nobody can know what it did
	answers []told
}

// told is an answer.
type told struct {
	text        string
	at          time.Time // when it was decided, as PostgreSQL counts; zero = that was not said
	stored      bool      // from now on the answer to this key
	asked, when int64
	err         error // why it is no answer
}

// group is what some clients do at the same time: requests, impatient ones twice, repeated ones, other ones under a key that is in
// use, debits in one call, reads and dry runs.
func (s *life) group() func() error {
	t := s.t
	var all []*question
	for range rapid.IntRange(1, 3).Draw(t, "group") {
		var r sent
		if len(s.sent) > 0 && rapid.IntRange(0, 4).Draw(t, "again?") == 0 {
			r = rapid.SampledFrom(s.sent).Draw(t, "again")
		} else {
			r = s.request()
			s.sent = append(s.sent, r)
			if rapid.Bool().Draw(t, "name it at once?") {
				s.nameFresh()
			}
		}
		all = append(all, s.asking(r))
		switch rapid.IntRange(0, 9).Draw(t, "twin or reuse") {
		case 0, 1:
			all = append(all, s.asking(r))
		case 2:
			all = append(all, s.asking(s.requestUnder(r.id)))
		}
	}
	s.nameFresh()
	s.sent = s.sent[max(0, len(s.sent)-40):]
	keys := s.keys()
	switch rapid.IntRange(0, 5).Draw(t, "also") {
	case 0, 1:
		all = append(all, s.reading(keys))
	case 2:
		all = append(all, s.trying(s.request()))
	}
	together := rapid.Bool().Draw(t, "together")
	return func() error { return s.atOnce(all, together) }
}

// nameFresh lets what was just asked for be named by what is asked next.
func (s *life) nameFresh() {
	s.grants, s.debits = append(s.grants, s.fresh.grants...), append(s.debits, s.fresh.debits...)
	s.fresh.grants, s.fresh.debits = nil, nil
}

// keys lists the balances that there is something to say about.
func (s *life) keys() []key {
	known := map[key]bool{}
	for _, meter := range modelMeters {
		known[key{memTenant, meter, ""}] = true
	}
	for _, m := range s.able {
		for k := range m.balances {
			known[k] = true
		}
	}
	var out []key
	for k := range known {
		out = append(out, k)
	}
	sortKeys(out)
	return out
}

func (s *life) asking(r sent) *question {
	return &question{
		sent: &r, what: r.id + " " + r.body, first: rapid.IntRange(0, 1).Draw(s.t, "instance"),
		ask: func(l *Ledger) told {
			c := s.prepared(&r)
			at := s.send(l, c)
			return s.heard(c, at)
		},
		expect: func(m *model) string { return m.apply(r.id, r.body, s.sticky, r.act(m)) },
	}
}

// heard turns a call that was answered into what its client was told.
func (s *life) heard(c *call, at time.Time) told {
	out := told{at: at}
	e, known := errors.AsType[*Error](c.err)
	switch {
	case c.err != nil && !known:
		out.err = fmt.Errorf("an error without a code: %w", c.err)
	case known && (e.Code == CodeUnavailable || e.Code == CodeQueueFull || e.Code == CodeOutcomeUnknown):
		out.err = e
	default:
		out.text = answerOf(c)
		out.stored = c.err == nil || e.Denial != nil && s.sticky
	}
	return out
}

func (s *life) reading(keys []key) *question {
	return &question{
		what: "read", first: rapid.IntRange(0, 1).Draw(s.t, "instance"),
		ask: func(l *Ledger) told {
			text, _, now, err := s.read(l, keys)
			return told{text: text, at: s.stored(now), err: err}
		},
		expect: func(m *model) string { return m.read(keys) },
	}
}

// trying asks what a request would be answered.
func (s *life) trying(r sent) *question {
	q := s.asking(r)
	q.what, q.sent = "try "+q.what, nil
	q.ask = func(l *Ledger) told {
		c := s.prepared(&r)
		at := s.try(l, c)
		return s.heard(c, at)
	}
	q.expect = func(m *model) string { return m.clone().apply("try "+r.id, r.body, false, r.act(m)) }
	return q
}

// atOnce lets clients ask at the same time and explains what they were told.
func (s *life) atOnce(all []*question, together bool) error {
	if err := s.look(); err != nil {
		return err
	}
	before := s.now
	var wg sync.WaitGroup
	var batch []*question
	for _, q := range all {
		if together && q.sent != nil {
			if _, debit := q.call().req.(*Debit); debit {
				batch = append(batch, q)
				continue
			}
		}
		wg.Go(func() { s.pursue(q) })
	}
	wg.Go(func() { s.pursueTogether(batch) })
	wg.Wait()
	s.late.Wait()
	// What a member did that was killed before it answered is known only now that everything is quiet.
	for _, q := range all {
		if n := len(q.answers); q.silent && n > 0 && !q.answers[n-1].stored && q.sent != nil {
			s.pursue(q)
		}
	}
	s.late.Wait()
	s.steps += len(all)
	if err := s.look(); err != nil {
		return err
	}
	seen, err := s.observe(all, before)
	if err != nil {
		return err
	}
	for _, o := range seen {
		s.logf("[%d-%d] %s at %s => %s", o.asked, o.told, o.what, o.at[0].Format("15:04:05.000000"), o.answer)
	}
	s.able, err = explanations(s.able, seen, s.seed)
	return err
}

// pursue asks until there is an answer, as a client with a key does.
func (s *life) pursue(q *question) {
	deadline := time.Now().Add(patience)
	for try := q.first; ; try++ {
		stamp := s.stamps.Add(1)
		if q.asked == 0 {
			q.asked = stamp
		}
		got, answered := ask(s.fleet, &s.late, try, q.ask)
		if s.note(q, got, answered, stamp) {
			return
		}
		if time.Now().After(deadline) {
			q.answers = append(q.answers, told{err: fmt.Errorf("not answered within %s: %w", patience, q.why(got, answered))})
			return
		}
		time.Sleep(time.Duration(1+rand.IntN(10)) * time.Millisecond) // back off as a client should; nothing waits for this
	}
}

func (q *question) why(got told, answered bool) error {
	if !answered {
		return errors.New("the instance was killed")
	}
	return got.err
}

// note keeps an answer, and says whether it is one to be content with.
func (s *life) note(q *question, got told, answered bool, stamp int64) bool {
	code := CodeOf(got.err)
	if !answered || code == CodeOutcomeUnknown {
		q.silent = true
		return false
	}
	if code == CodeUnavailable || code == CodeQueueFull {
		return false
	}
	got.asked, got.when = stamp, s.stamps.Add(1)
	q.answers = append(q.answers, got)
	return true
}

// pursueTogether asks for several debits in one call. Those that are not answered go on alone.
func (s *life) pursueTogether(batch []*question) {
	if len(batch) == 0 {
		return
	}
	stamp := s.stamps.Add(1)
	calls := make([]*call, len(batch))
	debits := make([]*Debit, len(batch))
	for i, q := range batch {
		calls[i] = s.prepared(q.sent)
		debits[i] = calls[i].req.(*Debit)
		q.asked = stamp
	}
	out, answered := ask(s.fleet, &s.late, batch[0].first, func(l *Ledger) []DebitOutcome { return l.DebitBatch(context.Background(), debits) })
	var wg sync.WaitGroup
	for i, q := range batch {
		var got told
		if answered {
			at := took(calls[i], out[i].Result, out[i].Err, func(r *DebitResult) (time.Time, bool) { return r.AsOf, r.Replayed })
			got = s.heard(calls[i], at)
		}
		if !s.note(q, got, answered, stamp) {
			wg.Go(func() { s.pursue(q) })
		}
	}
	wg.Wait()
}

// observe turns answers into what has to be explained. Every answer that is stored under a key is the same one, given once and then
// repeated; it may have been decided as soon as one of its senders had asked, whoever was answered first.
func (s *life) observe(all []*question, before time.Time) ([]*observed, error) {
	var out []*observed
	kept := map[string]*observed{}
	decided := map[string]time.Time{}
	for _, q := range all {
		for _, a := range q.answers {
			if a.err != nil {
				return nil, fmt.Errorf("%s: %w", q.what, a.err)
			}
			o := &observed{what: q.what, asked: a.asked, told: a.when, answer: a.text, expect: q.expect, alternatives: map[string]bool{}, at: []time.Time{before, s.now}}
			if !a.at.IsZero() {
				o.at = []time.Time{a.at.Add(s.ahead)}
			}
			if q.sent == nil || !a.stored {
				if q.sent != nil {
					o.operation = q.id
				}
				out = append(out, o)
				continue
			}
			o.operation, o.stays = q.id, true
			same := q.id + " " + q.body
			first := kept[same]
			if first == nil {
				o.asked = slices.MinFunc(all, func(a, b *question) int { return compareAsked(a, b, same) }).asked
				kept[same], decided[same] = o, a.at
				out = append(out, o)
				continue
			}
			if first.answer != o.answer || !decided[same].Equal(a.at) {
				return nil, fmt.Errorf("%s was answered\n  %s, decided at %s, and\n  %s, decided at %s", q.what, first.answer, decided[same], o.answer, a.at)
			}
			first.told = min(first.told, o.told)
		}
	}
	return out, nil
}

// compareAsked orders questions of one request by when they were asked, before all others.
func compareAsked(a, b *question, same string) int {
	rank := func(q *question) int64 {
		if q.sent == nil || q.id+" "+q.body != same || q.asked == 0 {
			return 1 << 62
		}
		return q.asked
	}
	return int(min(1, max(-1, rank(a)-rank(b))))
}

// persist asks a read until it is answered.
func persist[V any](s *life, first int, read func(*Ledger) (V, error)) (V, error) {
	type outcome struct {
		read V
		err  error
	}
	defer s.late.Wait()
	deadline := time.Now().Add(patience)
	for try := first; ; try++ {
		got, answered := ask(s.fleet, &s.late, try, func(l *Ledger) outcome {
			v, err := read(l)
			return outcome{v, err}
		})
		switch {
		case answered && CodeOf(got.err) != CodeUnavailable:
			return got.read, got.err
		case time.Now().After(deadline):
			var none V
			return none, fmt.Errorf("not read within %s", patience)
		}
		time.Sleep(time.Millisecond)
	}
}

// compare reads every balance from one instance, which has to show what one of the models does, and keeps those that agree.
func (s *life) compare(reader int) error {
	keys := s.keys()
	type view struct {
		text  string
		books []*book
		now   time.Time
	}
	seen, err := persist(s, reader, func(l *Ledger) (v view, err error) {
		v.text, v.books, v.now, err = s.read(l, keys)
		return v, err
	})
	if err != nil {
		return err
	}
	s.steps++
	var able []*model
	var want []string
	states := map[uint64]bool{}
	e := &explanation{seed: s.seed}
	for _, m := range s.able {
		m.now = seen.now
		if got := m.read(keys); got != seen.text {
			want = append(want, got)
			continue
		}
		if id := e.identify(m, 0, slices.Sorted(maps.Keys(m.ops))...); !states[id] {
			states[id] = true
			able = append(able, m)
		}
	}
	if len(able) == 0 {
		return fmt.Errorf("the ledger reads\n%s\nand the model\n%s", seen.text, strings.Join(want, "or\n"))
	}
	s.able = able
	for i, b := range seen.books {
		s.past = append(s.past, moment{at: seen.now, k: keys[i], figures: figures([...]int64{
			b.opening, b.granted, b.refunded, b.used, b.expired, b.adjusted, b.overage, b.held, b.remaining(),
		})})
	}
	return nil
}
