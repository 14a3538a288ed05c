package ratelimit

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

const (
	// MaxVector is the most requests in one script call, and maxVectorKeys the most buckets unless one request alone has
	// more. They bound how long one call keeps Redis from others: 64 requests on three buckets take 0.1 ms, on 128 buckets 0.7 ms.
	MaxVector     = 64
	maxVectorKeys = 128

	// maxVectorReads is the most keys that are only read in one call. Each takes a microsecond.
	maxVectorReads = 128

	// formsCompared is how many of a call's latest forms a request is compared with. Requests are mostly alike, so the first
	// comparison usually hits; where they are not, looking further costs more than it saves.
	formsCompared = 4
)

// row is one bucket's part of an answer.
type row struct {
	code code
	st   settled // after the request's own charge or refund
}

// answer is the answer to a query: rows in the order of its charges.
type answer struct {
	allowed bool
	now     int64 // us; by Redis' clock
	stale   bool  // Redis was in another window of a calendar: nothing was decided
	rows    []row
	reads   []string // as Decision.Reads
	err     error
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
	requests []any          // as the script reads them
	forms    []form
	reads    []string
	readAt   map[string]int // of a key in reads
	places   []int          // of the queries' charges in keys, one query after the other
	at       []int          // of the charges of the query at hand: their keys' places, or unplaced
}

// sentAs is what a rule's parameters depend on besides the time.
type sentAs struct {
	rule *Rule
	zone *time.Location
}

type sentRule struct {
	sentAs

	params params
}

// form is a request as the script reads it, but for its first bucket.
type form struct {
	op      op
	charges []formCharge
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

// vectors splits a batch into script calls, keeping the order of arrival. Without a cluster everything is in one slot, and
// requests of all tenants share calls: a third of a call's time is spent whatever it decides. On a cluster a call holds
// requests of one hash tag, and each query must have been split into parts. now is the time in us, as far as it is known.
func vectors(batch []query, cluster bool, now int64) []*vector {
	var all []*vector
	open := make(map[string]*vector)
	for i := range batch {
		q := &batch[i]
		slot := ""
		if cluster {
			slot = q.charges[0].tag
		}
		v := open[slot]
		if v == nil || !v.fits(q) {
			v = newVector(now)
			v.fits(q)
			open[slot] = v
			all = append(all, v)
		}
		v.add(i, q)
	}
	return all
}

func newVector(now int64) *vector {
	return &vector{now: now, index: make(map[string]int), ruleAt: make(map[sentAs]int), readAt: make(map[string]int)}
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
	return len(v.keys)+added <= maxVectorKeys && len(v.reads)+len(q.reads) <= maxVectorReads
}

// agrees reports whether c means a bucket in the same way as the rule that it was sent with.
func (v *vector) agrees(sent *sentRule, c *charge) bool {
	if sent.rule == c.rule && sent.zone == c.zone {
		return true
	}
	return sent.rule.word() == c.rule.word() && sent.params == c.rule.limit.params(c.at(v.now))
}

// add needs fits to have been asked about q last.
func (v *vector) add(position int, q *query) {
	v.queries = append(v.queries, position)
	for _, key := range q.reads {
		if _, known := v.readAt[key]; !known {
			v.readAt[key] = len(v.reads)
			v.reads = append(v.reads, key)
		}
	}
	next := form{op: q.op, charges: make([]formCharge, len(q.charges))}
	for i := range q.charges {
		c := &q.charges[i]
		if v.at[i] == unplaced {
			v.at[i] = v.place(c)
		}
		bucket := v.at[i] - v.at[0]
		if bucket < 0 || bucket >= nearest {
			bucket = nearest + v.at[i]
		}
		next.charges[i] = formCharge{rule: v.ruleOf[v.at[i]] + 1, bucket: bucket, cost: c.cost}
		if q.op == opRefund {
			next.charges[i].taken = c.taken
		}
	}
	v.places = append(v.places, v.at...)
	v.requests = append(v.requests, MaxVector*(v.at[0]+1)+v.form(next))
}

// place makes a bucket one of the call's.
func (v *vector) place(c *charge) int {
	as := sentAs{rule: c.rule, zone: c.zone}
	rule, known := v.ruleAt[as]
	if !known {
		rule = len(v.rules)
		v.ruleAt[as] = rule
		v.rules = append(v.rules, sentRule{as, c.rule.limit.params(c.at(v.now))})
	}
	at := len(v.keys)
	v.index[c.key] = at
	v.keys, v.tags, v.ruleOf = append(v.keys, c.key), append(v.tags, c.tag), append(v.ruleOf, rule)
	return at
}

// form is f's place in forms.
func (v *vector) form(f form) int {
	for n := len(v.forms) - 1; n >= max(0, len(v.forms)-formsCompared); n-- {
		if v.forms[n].op == f.op && slices.Equal(v.forms[n].charges, f.charges) {
			return n
		}
	}
	v.forms = append(v.forms, f)
	return len(v.forms) - 1
}

// call is the script call. now is the time to use in us; 0 is the server's.
func (v *vector) call(now int64) Call {
	const perRule, perCharge = 5, 4
	size := 4 + perRule*len(v.rules) + len(v.requests)
	for i := range v.forms {
		size += 2 + perCharge*len(v.forms[i].charges)
	}
	args := append(make([]any, 0, size), now, len(v.reads), len(v.rules), len(v.forms))
	for i := range v.rules {
		p := &v.rules[i].params
		args = append(args, v.rules[i].rule.word(), p[0], p[1], p[2], p[3])
	}
	for i := range v.forms {
		f := &v.forms[i]
		args = append(args, int64(f.op), len(f.charges))
		for _, c := range f.charges {
			args = append(args, c.rule, c.bucket, c.cost)
			if f.op == opRefund {
				args = append(args, c.taken)
			}
		}
	}
	keys := v.keys
	if len(v.reads) > 0 {
		keys = slices.Concat(v.keys, v.reads)
	}
	return Call{Keys: keys, Args: append(args, v.requests...), Packed: true}
}

// decoded is a script reply in the terms of the batch.
type decoded struct {
	now     int64
	rebased int64
	ahead   []int64 // per key
	answers []answer
}

// read reads the reply to call. Its error matches errBackend or errScript.
func (v *vector) read(batch []query, reply Reply) (decoded, error) {
	switch {
	case reply.Err == nil:
		return v.decode(batch, reply)
	case errors.Is(reply.Err, errScript):
		return decoded{}, reply.Err
	case isRefusal(reply.Err):
		return decoded{}, fmt.Errorf("%w: %w", errScript, reply.Err)
	default:
		return decoded{}, notDecided(reply.Err)
	}
}

// decode reads the script's reply. An error means a script of another version, which is a bug.
func (v *vector) decode(batch []query, reply Reply) (decoded, error) {
	d, rest, err := v.decodeBuckets(reply)
	if err != nil {
		return decoded{}, err
	}
	want := len(v.queries)
	for _, i := range v.queries {
		for j := range batch[i].charges {
			want += batch[i].charges[j].rule.limit.width()
		}
	}
	if len(rest) != want {
		return decoded{}, fmt.Errorf("%w: a reply of %d integers about %d requests, want %d", errScript, len(rest), len(v.queries), want)
	}
	rows, places := make([]row, len(v.places)), v.places
	for n, i := range v.queries {
		charges := batch[i].charges
		a := answer{now: d.now, allowed: rest[0] == 1, rows: rows[:len(charges):len(charges)]}
		rest, rows = rest[1:], rows[len(charges):]
		for j := range charges {
			l, at := charges[j].rule.limit, places[j]
			width := l.width()
			a.rows[j] = row{code: code(rest[0]), st: l.read(rest[1:width], d.ahead[at], d.now, v.rules[v.ruleOf[at]].params)}
			a.stale = a.stale || a.rows[j].code == codeStale
			rest = rest[width:]
		}
		places = places[len(charges):]
		if reads := batch[i].reads; len(reads) > 0 {
			a.reads = make([]string, len(reads))
			for j, key := range reads {
				a.reads[j] = reply.Texts[v.readAt[key]]
			}
		}
		d.answers[n] = a
	}
	return d, nil
}

// decodeBuckets reads what the reply says about the buckets; requests is what it says about them.
func (v *vector) decodeBuckets(reply Reply) (d decoded, requests []int64, err error) {
	const head, pair = 3, 2
	ints := reply.Ints
	if len(ints) < head || len(reply.Texts) != len(v.reads) || ints[2] < 0 || ints[2] > int64(len(v.keys)) || int64(len(ints)) < head+pair*ints[2] {
		return d, nil, fmt.Errorf("%w: a reply of %d integers and %d strings about %d buckets and %d keys", errScript,
			len(ints), len(reply.Texts), len(v.keys), len(v.reads))
	}
	d = decoded{now: ints[0], rebased: ints[1], ahead: make([]int64, len(v.keys)), answers: make([]answer, len(v.queries))}
	end := len(ints) - pair*int(ints[2])
	for i := end; i < len(ints); i += pair {
		if ints[i] < 1 || ints[i] > int64(len(v.keys)) {
			return d, nil, fmt.Errorf("%w: a reply about bucket %d of %d", errScript, ints[i], len(v.keys))
		}
		d.ahead[ints[i]-1] = ints[i+1]
	}
	return d, ints[head:end], nil
}
