package ratelimit

import (
	"fmt"
	"slices"
	"time"

	"github.com/quotasvc/quotasvc/internal/ratelimit/rule"
	"github.com/quotasvc/quotasvc/internal/redisstore"
)

const (
	// MaxVector is the most requests in one script call, and maxVectorKeys the most buckets unless one request alone has
	// more. They bound how long one call keeps Redis from others: 64 requests on three buckets take 0.1 ms, on 128 buckets 0.7 ms.
	MaxVector     = 64
	maxVectorKeys = 128

	// formsCompared is how many of a call's latest forms a request is compared with. Requests are mostly alike, so the first
	// comparison usually hits; where they are not, looking further costs more than it saves.
	formsCompared = 4
)

// row is one bucket's part of an answer.
type row struct {
	code rule.Code
	st   rule.Level // after the request's own charge or refund
}

// answer is the answer to a query: rows in the order of its charges.
type answer struct {
	allowed bool
	now     int64 // us; by Redis' clock
	stale   bool  // Redis was in another window of a calendar: nothing was decided
	rows    []row
}

// vector is one script call under construction: queries of one hash slot, in order. Rules are sent once, and so is what
// queries have in common: equal ones, and those that differ only in their buckets, share a form.
type vector struct {
	now      int64 // us; windows are those of this time
	keys     []string
	tags     []string       // of keys
	ruleOf   []int          // of keys: its place in rules
	index    map[string]int // of a key in keys
	rules    []sentRule
	ruleAt   map[sentAs]int // of a rule in rules
	queries  []int          // positions in the batch
	requests []int64        // as the script reads them
	places   []int          // of the queries' charges in keys, one query after the other
	at       []int          // of the charges of the query at hand: their keys' places, or unplaced
	forms    []form
	charges  []formCharge // of forms, one form after the other

	// The rest is only space that is needed to send the call and to read its reply.

	args   []any
	ahead  []int64 // of keys: by how much Redis says that their time is ahead
	latest []*row  // of keys: what Redis said of them last
}

// sentAs is what a rule's parameters depend on besides the time.
type sentAs struct {
	rule *rule.Rule
	zone *time.Location
}

type sentRule struct {
	sentAs

	params rule.Params
}

// form is a request as the script reads it, but for its first bucket.
type form struct {
	op       rule.Op
	from, to int // its charges' places in those of the vector
}

type formCharge struct {
	rule, bucket int // the script's
	cost, taken  int64
}

const (
	unplaced = -1

	// nearest is the first of the script's bucket numbers that does not count from the request's first bucket.
	nearest = MaxCharges
)

func newVector() *vector {
	return &vector{index: make(map[string]int), ruleAt: make(map[sentAs]int)}
}

// clear makes v as good as new, but for the space that it has. What is not named here is lost.
func (v *vector) clear() {
	clear(v.index)
	clear(v.ruleAt)
	*v = vector{
		keys: emptied(v.keys), tags: emptied(v.tags), ruleOf: emptied(v.ruleOf), index: v.index,
		rules: emptied(v.rules), ruleAt: v.ruleAt,
		queries: emptied(v.queries), requests: emptied(v.requests), places: emptied(v.places), at: emptied(v.at),
		forms: emptied(v.forms), charges: emptied(v.charges),
		args: emptied(v.args), ahead: emptied(v.ahead), latest: emptied(v.latest),
	}
}

// emptied is s' space with nothing in it: what was there is no longer kept alive.
func emptied[T any](s []T) []T {
	clear(s)
	return s[:0]
}

// fits reports whether q can be decided in the same call, and finds its buckets. Two versions of one rule cannot: a key has one
// set of parameters per call.
func (v *vector) fits(q *query) bool {
	if len(v.queries) == MaxVector {
		return false
	}
	added := 0
	v.at = v.at[:0]
	for i := range q.charges {
		c := &q.charges[i]
		at, known := v.index[c.key]
		switch {
		case !known:
			added++
			at = unplaced
		case !v.agrees(&v.rules[v.ruleOf[at]], c):
			return false
		}
		v.at = append(v.at, at)
	}
	return len(v.keys)+added <= maxVectorKeys
}

// agrees reports whether c means a bucket in the same way as the rule that it was sent with.
func (v *vector) agrees(sent *sentRule, c *charge) bool {
	if sent.rule == c.rule && sent.zone == c.zone {
		return true
	}
	return sent.rule.Word() == c.rule.Word() && sent.params == c.rule.Limit().Params(c.at(v.now))
}

// add needs fits to have been asked about q last.
func (v *vector) add(position int, q *query) {
	v.queries = append(v.queries, position)
	from := len(v.charges)
	for i := range q.charges {
		c := &q.charges[i]
		if v.at[i] == unplaced {
			v.at[i] = v.place(c)
		}
		bucket := v.at[i] - v.at[0]
		if bucket < 0 || bucket >= nearest {
			bucket = nearest + v.at[i]
		}
		next := formCharge{rule: v.ruleOf[v.at[i]] + 1, bucket: bucket, cost: c.cost}
		if q.op == rule.Refund {
			next.taken = c.taken
		}
		v.charges = append(v.charges, next)
	}
	v.places = append(v.places, v.at...)
	v.requests = append(v.requests, int64(MaxVector*(v.at[0]+1)+v.form(q.op, from)))
}

// place makes a bucket one of the call's.
func (v *vector) place(c *charge) int {
	as := sentAs{rule: c.rule, zone: c.zone}
	rule, known := v.ruleAt[as]
	if !known {
		rule = len(v.rules)
		v.ruleAt[as] = rule
		v.rules = append(v.rules, sentRule{as, c.rule.Limit().Params(c.at(v.now))})
	}
	at := len(v.keys)
	v.index[c.key] = at
	v.keys, v.tags, v.ruleOf = append(v.keys, c.key), append(v.tags, c.tag), append(v.ruleOf, rule)
	return at
}

// form is the place in forms of the one with this op and the charges from there on, which are dropped if one is like it.
func (v *vector) form(o rule.Op, from int) int {
	charges := v.charges[from:]
	for n := len(v.forms) - 1; n >= max(0, len(v.forms)-formsCompared); n-- {
		if f := v.forms[n]; f.op == o && slices.Equal(v.charges[f.from:f.to], charges) {
			v.charges = v.charges[:from]
			return n
		}
	}
	v.forms = append(v.forms, form{op: o, from: from, to: len(v.charges)})
	return len(v.forms) - 1
}

// call is the script call. now is the time to use in us; 0 is the server's. Where it can it points at v's numbers: in an
// interface each would be a copy of its own on the heap, except for those below 256.
func (v *vector) call(now int64) redisstore.Call {
	args := append(v.args[:0], now, len(v.rules), len(v.forms))
	for i := range v.rules {
		p := &v.rules[i].params
		args = append(args, v.rules[i].rule.Word(), &p[0], &p[1], &p[2], &p[3])
	}
	for _, f := range v.forms {
		charges := v.charges[f.from:f.to]
		args = append(args, int64(f.op), len(charges))
		for i := range charges {
			c := &charges[i]
			args = append(args, c.rule, c.bucket, &c.cost)
			if f.op == rule.Refund {
				args = append(args, &c.taken)
			}
		}
	}
	for i := range v.requests {
		args = append(args, &v.requests[i])
	}
	v.args = args
	return redisstore.Call{Keys: v.keys, Args: args, Packed: true}
}

// reading is what a script reply says besides its answers.
type reading struct {
	now     int64 // us
	rebased int64 // buckets
}

// read reads the reply to call into the results of the batch. It returns the reply's error, or one that matches
// redisstore.ErrScript if the reply is of another version of the script, which is a bug. It has read nothing then.
func (v *vector) read(batch []query, reply redisstore.Reply, results []redisstore.Result[answer]) (reading, error) {
	if reply.Err != nil {
		return reading{}, reply.Err
	}
	d, rest, err := v.decodeBuckets(reply.Ints)
	if err != nil {
		return reading{}, err
	}
	want := len(v.queries)
	for _, i := range v.queries {
		for j := range batch[i].charges {
			want += batch[i].charges[j].rule.Limit().Width()
		}
	}
	if len(rest) != want {
		return reading{}, fmt.Errorf("%w: a reply of %d integers about %d requests, want %d", redisstore.ErrScript, len(rest), len(v.queries), want)
	}
	// The answers go to their requests, and what they hold with them: it is not used again.
	rows, places := make([]row, len(v.places)), v.places
	for _, i := range v.queries {
		charges := batch[i].charges
		a := answer{now: d.now, allowed: rest[0] == 1, rows: rows[:len(charges):len(charges)]}
		rest, rows = rest[1:], rows[len(charges):]
		for j := range charges {
			l, at := charges[j].rule.Limit(), places[j]
			width := l.Width()
			a.rows[j] = row{code: rule.Code(rest[0]), st: l.Read(rest[1:width], v.ahead[at], d.now, v.rules[v.ruleOf[at]].params)}
			a.stale = a.stale || a.rows[j].code == rule.Stale
			rest = rest[width:]
		}
		places = places[len(charges):]
		results[i].Answer = a
	}
	return d, nil
}

// decodeBuckets reads what the reply says about the buckets; requests is what it says about them.
func (v *vector) decodeBuckets(ints []int64) (d reading, requests []int64, err error) {
	const head, pair = 3, 2
	if len(ints) < head || ints[2] < 0 || ints[2] > int64(len(v.keys)) || int64(len(ints)) < head+pair*ints[2] {
		return d, nil, fmt.Errorf("%w: a reply of %d integers about %d buckets", redisstore.ErrScript, len(ints), len(v.keys))
	}
	v.ahead = append(v.ahead[:0], make([]int64, len(v.keys))...)
	end := len(ints) - pair*int(ints[2])
	for i := end; i < len(ints); i += pair {
		if ints[i] < 1 || ints[i] > int64(len(v.keys)) {
			return d, nil, fmt.Errorf("%w: a reply about bucket %d of %d", redisstore.ErrScript, ints[i], len(v.keys))
		}
		v.ahead[ints[i]-1] = ints[i+1]
	}
	return reading{now: ints[0], rebased: ints[1]}, ints[head:end], nil
}

// last is what Redis said last about each of keys, by the answers that were read.
func (v *vector) last(results []redisstore.Result[answer]) []*row {
	v.latest = append(v.latest[:0], make([]*row, len(v.keys))...)
	places := v.places
	for _, i := range v.queries {
		rows := results[i].Answer.rows
		for j := range rows {
			v.latest[places[j]] = &rows[j]
		}
		places = places[len(rows):]
	}
	return v.latest
}
