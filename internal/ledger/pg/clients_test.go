package pg

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"pgregory.net/rapid"

	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/lab/testenv"
	"github.com/quotasvc/quotasvc/internal/ledger"
	"github.com/quotasvc/quotasvc/internal/ledger/model"
)

// question is a request or read of one client. The two members receive it alternately, beginning with the member
// `first`, until it is answered.
type question struct {
	*model.Request // nil for reads
	what           string
	first          int // member
	ask            func(l *Ledger) told
	expect         func(m *model.Model) string

	asked   int64 // stamp of the first attempt; 0 if there was none yet
	silent  bool  // an attempt was not answered, so its effect is unknown
	answers []told
}

// told is the answer to one attempt of a question.
type told struct {
	text        string
	at          time.Time // instant of the decision, in PostgreSQL's time; zero if the answer has none
	stored      bool      // the answer is stored, so every repeat with this key gets it
	asked, when int64
	err         error // why there is no answer
}

// group returns a step in which several clients send random requests at the same time. There are new requests (some
// sent twice), repeated requests, other requests with a used key, several debits in one call, reads and dry runs.
func (s *life) group() func() error {
	t := s.T
	var all []*question
	for range rapid.IntRange(1, 3).Draw(t, "group") {
		var r model.Request
		if len(s.Sent) > 0 && rapid.IntRange(0, 4).Draw(t, "again?") == 0 {
			r = rapid.SampledFrom(s.Sent).Draw(t, "again")
		} else {
			r = s.Request()
			s.Sent = append(s.Sent, r)
			if rapid.Bool().Draw(t, "name it at once?") {
				s.NameFresh()
			}
		}
		all = append(all, s.asking(r))
		switch rapid.IntRange(0, 9).Draw(t, "twin or reuse") {
		case 0, 1:
			all = append(all, s.asking(r))
		case 2:
			all = append(all, s.asking(s.RequestUnder(r.ID)))
		}
	}
	s.NameFresh()
	s.Sent = s.Sent[max(0, len(s.Sent)-40):]
	keys := s.keys()
	switch rapid.IntRange(0, 5).Draw(t, "also") {
	case 0, 1:
		all = append(all, s.reading(keys))
	case 2:
		all = append(all, s.trying(s.Request()))
	}
	together := rapid.Bool().Draw(t, "together")
	return func() error { return s.atOnce(all, together) }
}

// keys lists the balances of the tenant.
func (s *life) keys() []ledger.BalanceKey {
	known := map[ledger.BalanceKey]bool{}
	for _, meter := range model.Meters {
		known[ledger.BalanceKey{Tenant: model.Tenant, Meter: meter}] = true
	}
	for _, m := range s.able {
		for _, k := range m.Keys() {
			known[k] = true
		}
	}
	return slices.SortedFunc(maps.Keys(known), ledger.CompareKeys)
}

func (s *life) asking(r model.Request) *question {
	return &question{
		Request: &r, what: r.ID + " " + r.Body, first: rapid.IntRange(0, 1).Draw(s.T, "instance"),
		ask: func(l *Ledger) told {
			c := s.prepared(&r)
			at := s.send(l, c)
			return s.heard(c, at)
		},
		expect: func(m *model.Model) string { return r.Ask(m, s.Sticky) },
	}
}

// heard returns the answer to a call as a client receives it.
func (s *life) heard(c *ledger.Call, at time.Time) told {
	out := told{at: at}
	e, known := errors.AsType[*errcode.Error](c.Err)
	switch {
	case c.Err != nil && !known:
		out.err = fmt.Errorf("an error without a code: %w", c.Err)
	case known && (e.Code == errcode.Unavailable || e.Code == errcode.QueueFull || e.Code == errcode.OutcomeUnknown):
		out.err = e
	default:
		out.text = model.AnswerOf(c)
		out.stored = c.Err == nil || ledger.DenialOf(e) != nil && s.Sticky
	}
	return out
}

func (s *life) reading(keys []ledger.BalanceKey) *question {
	return &question{
		what: "read", first: rapid.IntRange(0, 1).Draw(s.T, "instance"),
		ask: func(l *Ledger) told {
			text, _, now, err := s.read(l, keys)
			return told{text: text, at: s.stored(now), err: err}
		},
		expect: func(m *model.Model) string { return m.Describe(keys) },
	}
}

// trying returns a question that sends r as a dry run.
func (s *life) trying(r model.Request) *question {
	q := s.asking(r)
	q.what, q.Request = "try "+q.what, nil
	q.ask = func(l *Ledger) told {
		c := s.prepared(&r)
		at := s.send(l, c, DryRun(true))
		return s.heard(c, at)
	}
	q.expect = func(m *model.Model) string { return r.Try(m) }
	return q
}

// atOnce sends all questions at the same time. It returns an error if no model explains the answers.
func (s *life) atOnce(all []*question, together bool) error {
	if err := s.look(); err != nil {
		return err
	}
	before := s.Now
	var wg sync.WaitGroup
	var batch []*question
	for _, q := range all {
		if together && q.Request != nil {
			if _, debit := q.Call().Op.(*ledger.Debit); debit {
				batch = append(batch, q)
				continue
			}
		}
		wg.Go(func() { s.pursue(q) })
	}
	wg.Go(func() { s.pursueTogether(batch) })
	wg.Wait()
	s.late.Wait()
	// A killed member may have carried out a request that it did not answer. No call runs any more, so a repeat of
	// the request shows whether it was carried out.
	for _, q := range all {
		if n := len(q.answers); q.silent && n > 0 && !q.answers[n-1].stored && q.Request != nil {
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
		s.logf("[%d-%d] %s at %s => %s", o.AskedAt, o.AnsweredAt, o.What, o.At[0].Format("15:04:05.000000"), o.Answer)
	}
	s.able, err = model.Explain(s.able, seen, s.seed)
	return err
}

// pursue repeats a question until it is answered, as a client does with its key.
func (s *life) pursue(q *question) {
	deadline := time.Now().Add(testenv.Patience)
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
			q.answers = append(q.answers, told{err: fmt.Errorf("not answered within %s: %w", testenv.Patience, q.why(got, answered))})
			return
		}
		backOff()
	}
}

func (q *question) why(got told, answered bool) error {
	if !answered {
		return errors.New("the instance was killed")
	}
	return got.err
}

// note stores an answer and reports whether it is final. Otherwise the question must be repeated.
func (s *life) note(q *question, got told, answered bool, stamp int64) bool {
	code := errcode.Of(got.err)
	if !answered || code == errcode.OutcomeUnknown {
		q.silent = true
		return false
	}
	if code == errcode.Unavailable || code == errcode.QueueFull {
		return false
	}
	got.asked, got.when = stamp, s.stamps.Add(1)
	q.answers = append(q.answers, got)
	return true
}

// pursueTogether sends several debits in one call. It repeats the unanswered debits separately.
func (s *life) pursueTogether(batch []*question) {
	if len(batch) == 0 {
		return
	}
	stamp := s.stamps.Add(1)
	calls := make([]*ledger.Call, len(batch))
	debits := make([]*ledger.Debit, len(batch))
	for i, q := range batch {
		calls[i] = s.prepared(q.Request)
		debits[i] = calls[i].Op.(*ledger.Debit)
		q.asked = stamp
	}
	out, answered := ask(s.fleet, &s.late, batch[0].first, func(l *Ledger) []DebitOutcome { return l.DebitBatch(asked(calls[0]), debits) })
	var wg sync.WaitGroup
	for i, q := range batch {
		var got told
		if answered {
			at := took(calls[i], out[i].Result, out[i].Err, func(r *ledger.DebitResult) (time.Time, bool) { return r.AsOf, r.Replayed })
			got = s.heard(calls[i], at)
		}
		if !s.note(q, got, answered, stamp) {
			wg.Go(func() { s.pursue(q) })
		}
	}
	wg.Wait()
}

// observe returns the observations that the models must explain. All stored answers of one request become one
// observation, because there was one decision. The decision may be as early as the first attempt of any client that
// sent the request. observe returns an error if the stored answers differ.
func (s *life) observe(all []*question, before time.Time) ([]*model.Observation, error) {
	var out []*model.Observation
	kept := map[string]*model.Observation{}
	decided := map[string]time.Time{}
	for _, q := range all {
		for _, a := range q.answers {
			if a.err != nil {
				return nil, fmt.Errorf("%s: %w", q.what, a.err)
			}
			o := &model.Observation{What: q.what, AskedAt: a.asked, AnsweredAt: a.when, Answer: a.text, Expect: q.expect, At: []time.Time{before, s.Now}}
			if !a.at.IsZero() {
				o.At = []time.Time{a.at.Add(s.ahead)}
			}
			if q.Request == nil || !a.stored {
				if q.Request != nil {
					o.Operation = q.ID
				}
				out = append(out, o)
				continue
			}
			o.Operation, o.Stays = q.ID, true
			same := q.ID + " " + q.Body
			first := kept[same]
			if first == nil {
				o.AskedAt = slices.MinFunc(all, func(a, b *question) int { return compareAsked(a, b, same) }).asked
				kept[same], decided[same] = o, a.at
				out = append(out, o)
				continue
			}
			if first.Answer != o.Answer || !decided[same].Equal(a.at) {
				return nil, fmt.Errorf("%s was answered\n  %s, decided at %s, and\n  %s, decided at %s", q.what, first.Answer, decided[same], o.Answer, a.at)
			}
			first.AnsweredAt = min(first.AnsweredAt, o.AnsweredAt)
		}
	}
	return out, nil
}

// compareAsked orders questions for slices.MinFunc: the questions with the given request come first, ordered by the
// stamps of their first attempts.
func compareAsked(a, b *question, same string) int {
	rank := func(q *question) int64 {
		if q.Request == nil || q.ID+" "+q.Body != same || q.asked == 0 {
			return 1 << 62
		}
		return q.asked
	}
	return int(min(1, max(-1, rank(a)-rank(b))))
}

// persist repeats a read until it is answered, at most for testenv.Patience.
func persist[V any](s *life, first int, read func(*Ledger) (V, error)) (V, error) {
	type outcome struct {
		read V
		err  error
	}
	defer s.late.Wait()
	deadline := time.Now().Add(testenv.Patience)
	for try := first; ; try++ {
		got, answered := ask(s.fleet, &s.late, try, func(l *Ledger) outcome {
			v, err := read(l)
			return outcome{v, err}
		})
		code := errcode.Of(got.err) // a report is slow when its connection hangs
		switch {
		case answered && code != errcode.Unavailable && code != errcode.ReportTooSlow:
			return got.read, got.err
		case time.Now().After(deadline):
			var none V
			return none, fmt.Errorf("not read within %s", testenv.Patience)
		}
		backOff()
	}
}

// backOff waits before a repeat, as a client should.
func backOff() { time.Sleep(time.Duration(1+rand.IntN(10)) * time.Millisecond) }

// compare reads every balance from one instance, and keeps the models whose balances are all the same. It returns an
// error if there is no such model.
func (s *life) compare(reader int) error {
	keys := s.keys()
	type view struct {
		text  string
		books []*ledger.Book
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
	var able []*model.Model
	var want []string
	states := map[uint64]bool{}
	for _, m := range s.able {
		m.Now = seen.now
		if got := m.Describe(keys); got != seen.text {
			want = append(want, got)
			continue
		}
		if id := m.Hash(s.seed); !states[id] {
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
			b.Opening, b.Granted, b.Refunded, b.Used, b.Expired, b.Adjusted, b.Overage, b.Held, b.Remaining(),
		})})
	}
	return nil
}
