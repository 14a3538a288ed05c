package ratelimit

import (
	"fmt"
	"slices"
	"time"

	"github.com/quotasvc/quotasvc/internal/ratelimit/rule"
	"github.com/quotasvc/quotasvc/internal/store/redisstore"
)

const (
	// MaxVector is the largest number of requests in one script call. maxVectorKeys is the largest number of buckets
	// in one call. They bound the time for which one call blocks Redis: 64 requests take 0.1 ms on three buckets and
	// 0.7 ms on 128 buckets.
	MaxVector     = 64
	maxVectorKeys = 128

	// formsCompared is the number of newest forms with which a request is compared. Most requests have the same form,
	// so the first comparison usually succeeds. If it fails, a longer search costs more than it saves.
	formsCompared = 4
)

// bucketResult is the decision about one bucket, by the script or by this process.
type bucketResult struct {
	code  rule.Code
	level rule.Level // after the charge or refund of this request
	taken int64      // number of tokens that a charge after the fact took

	banned int64 // µs until the bucket's ban ends; 0: not banned; unknownBan: not known
}

// answer is the answer to a query. Its results are in the order of the query's charges.
type answer struct {
	allowed bool
	now     int64 // µs, by Redis's clock
	stale   bool  // Redis's clock was in another calendar window: nothing was decided
	lost    bool  // Redis has lost the data that this process knows: nothing was decided
	results []bucketResult
}

// vector is a script call that is being built. It contains queries of one hash slot, in order. Each rule is sent
// once. If queries are equal or differ only in their buckets, they share a form, which is sent once.
type vector struct {
	now      int64 // µs; decides which calendar windows are sent
	epoch    int64 // the epoch of the data that this process knows; 0: the script does not compare it
	keys     []string
	ids      []string       // the keys of the ids of queries, in order
	tags     []string       // the hash tag of each key
	ruleOf   []int          // by key: its index in rules
	banning  []int          // indices in keys of the buckets whose rules have bans
	index    map[string]int // by key: its index in keys
	rules    []sentRule
	ruleAt   map[ruleKey]int // index in rules
	queries  []int           // indices in the batch
	requests []int64         // one number per query, as the script reads it
	places   []int           // for each charge of the queries, in order: the index in keys
	at       []int           // for each charge of the query in the last call of fits: the index in keys, or unplaced
	forms    []form
	charges  []formCharge // of the forms, one form after another
	peeks    bool         // whether there are peeks among the queries

	// The fields below are reusable memory for sending the call and for decoding its reply.

	sent   []string // keys, ids, then the key of the epoch
	args   []any
	ahead  []int64         // by key: µs by which the bucket's time is ahead of Redis's clock
	latest []*bucketResult // by key: the result of the last query on this bucket
}

// ruleKey contains the values that determine the parameters of a rule at a given time.
type ruleKey struct {
	rule *rule.Rule
	zone *time.Location
}

type sentRule struct {
	ruleKey

	params rule.Params
}

// form is a request as the script reads it, except for its first bucket. Most bucket numbers in a form are relative to
// this first bucket (see nearest).
type form struct {
	op       rule.Op
	from, to int // its charges are vector.charges[from:to]
}

type formCharge struct {
	rule, bucket int // the numbers of the rule and the bucket in the script call, from 1
	cost         int64
	taken, debt  int64 // of a refund: charge.taken; of a charge after the fact: this and the debt
	mark         int64 // of a query with an id: see markOf; else 0
}

const (
	unplaced = -1

	// codes is the factor with which the script packs a value and a code into one number: value * codes + code.
	codes = 8

	// nearest separates two sorts of bucket numbers in a form. A number below nearest is the distance from the
	// request's first bucket. The number nearest+i is the bucket with the index i in vector.keys.
	nearest = MaxCharges
)

func newVector() *vector {
	return &vector{index: make(map[string]int), ruleAt: make(map[ruleKey]int)}
}

// clear empties v and keeps the memory of its slices and maps, except for slices that are not listed here.
func (v *vector) clear() {
	clear(v.index)
	clear(v.ruleAt)
	*v = vector{
		keys: emptied(v.keys), ids: emptied(v.ids), tags: emptied(v.tags), ruleOf: emptied(v.ruleOf), banning: emptied(v.banning), index: v.index,
		rules: emptied(v.rules), ruleAt: v.ruleAt,
		queries: emptied(v.queries), requests: emptied(v.requests), places: emptied(v.places), at: emptied(v.at),
		forms: emptied(v.forms), charges: emptied(v.charges),
		sent: emptied(v.sent), args: emptied(v.args), ahead: emptied(v.ahead), latest: emptied(v.latest),
	}
}

// emptied returns s with length 0. It clears the old elements, so that the memory to which they point can be freed.
func emptied[T any](s []T) []T {
	clear(s)
	return s[:0]
}

// fits reports whether q can be decided in the same call, and looks up q's buckets for add. Two versions of one rule
// cannot be in the same call, because each key has only one set of parameters in a call.
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

// agrees reports whether c's rule has the same parameters as the rule that the call already contains for c's bucket.
func (v *vector) agrees(sent *sentRule, c *charge) bool {
	if sent.rule == c.rule && sent.zone == c.zone {
		return true
	}
	return sent.rule.Word() == c.rule.Word() && sent.rule.Ban == c.rule.Ban && sent.params == c.rule.Limit().Params(c.at(v.now))
}

// add adds q, which is at position in the batch. The last call of fits must have been for q.
func (v *vector) add(position int, q *query) {
	v.queries = append(v.queries, position)
	if q.identified() {
		v.ids = append(v.ids, q.once.key())
	}
	v.peeks = v.peeks || q.op == rule.Peek && !q.fresh
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
		if q.op >= rule.Refund {
			next.taken = c.taken
		}
		if q.op == rule.Late {
			next.debt = c.rule.Debt
		}
		if q.identified() {
			next.mark = markOf(c.rule)
		}
		v.charges = append(v.charges, next)
	}
	v.places = append(v.places, v.at...)
	v.requests = append(v.requests, int64(MaxVector*(v.at[0]+1)+v.form(q.op, from)))
}

// place adds c's bucket to the call and returns its index in keys.
func (v *vector) place(c *charge) int {
	as := ruleKey{rule: c.rule, zone: c.zone}
	rule, known := v.ruleAt[as]
	if !known {
		rule = len(v.rules)
		v.ruleAt[as] = rule
		v.rules = append(v.rules, sentRule{as, c.rule.Limit().Params(c.at(v.now))})
	}
	at := len(v.keys)
	v.index[c.key] = at
	if c.rule.Ban.After > 0 {
		v.banning = append(v.banning, at)
	}
	v.keys, v.tags, v.ruleOf = append(v.keys, c.key), append(v.tags, c.tag), append(v.ruleOf, rule)
	return at
}

// form returns the index of the form with the operation o and the charges v.charges[from:]. If an equal form exists,
// form removes these charges and returns the index of the equal form.
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

// call returns the script call. now is the time in µs that the script uses; 0 means Redis's time. The arguments are
// pointers to v's numbers, because a number of 256 or more in an interface would be copied to the heap.
func (v *vector) call(now int64) redisstore.Call {
	args := append(v.args[:0], now, len(v.rules), len(v.forms), &v.epoch)
	for i := range v.rules {
		p := &v.rules[i].params
		word := v.rules[i].rule.Word()
		if v.rules[i].rule.Ban.After > 0 {
			word += rule.WithBan
		}
		args = append(args, word, &p[0], &p[1], &p[2], &p[3])
	}
	if len(v.banning) > 0 {
		args = v.appendBans(args)
	}
	for _, f := range v.forms {
		charges := v.charges[f.from:f.to]
		op := int64(f.op)
		if charges[0].mark != 0 {
			op += rule.WithID
		}
		args = append(args, op, len(charges))
		for i := range charges {
			c := &charges[i]
			args = append(args, c.rule, c.bucket, &c.cost)
			if f.op >= rule.Refund {
				args = append(args, &c.taken)
			}
			if f.op == rule.Late {
				args = append(args, &c.debt)
			}
			if c.mark != 0 {
				args = append(args, &c.mark)
			}
		}
	}
	for i := range v.requests {
		args = append(args, &v.requests[i])
	}
	v.args = args
	keys := v.keys
	switch {
	case v.epoch != 0:
		keys = v.sent
	case len(v.ids) > 0:
		keys = slices.Concat(v.keys, v.ids)
	}
	if len(v.banning) > 0 {
		keys = v.withBans(keys)
	}
	return redisstore.Call{Keys: keys, Args: args, Packed: true, Watch: v.peeks}
}

// replyHead is the part of a reply that does not belong to a single query.
type replyHead struct {
	now     int64 // µs; Redis's clock
	rebased int64 // buckets moved back after the clock was set back
	epoch   int64 // of the data in Redis; 0 if unknown
	lost    bool  // the epoch is not the one that the call sent: nothing was decided
}

// read decodes the reply to the call into the results of the batch. If the reply is an error, read returns it. If the
// reply does not have the form of this version of the script, which is a bug, the error matches redisstore.ErrScript.
// After an error the results are unchanged.
func (v *vector) read(batch []query, reply redisstore.Reply, results []redisstore.Result[answer]) (replyHead, error) {
	if reply.Err != nil {
		return replyHead{}, reply.Err
	}
	d, rest, err := v.decodeBuckets(reply.Ints)
	if err != nil {
		return replyHead{}, err
	}
	if d.lost = v.epoch > unknownEpoch && d.epoch != v.epoch; d.lost {
		for _, i := range v.queries {
			results[i].Answer = answer{now: d.now, lost: true}
		}
		return d, nil
	}
	want := len(v.queries)
	for _, i := range v.queries {
		for j := range batch[i].charges {
			want += batch[i].charges[j].rule.Limit().Width()
		}
	}
	if len(rest) != want {
		return replyHead{}, fmt.Errorf("%w: a reply of %d integers about %d requests, want %d", redisstore.ErrScript, len(rest), len(v.queries), want)
	}
	// The results are part of the answers that callers get, so their memory cannot be reused.
	rows, places := make([]bucketResult, len(v.places)), v.places
	for _, i := range v.queries {
		charges := batch[i].charges
		a := answer{now: d.now, allowed: rest[0] == 1, results: rows[:len(charges):len(charges)]}
		rest, rows = rest[1:], rows[len(charges):]
		for j := range charges {
			l, at := charges[j].rule.Limit(), places[j]
			width := l.Width()
			a.results[j] = bucketResult{code: rule.Code(rest[0] % codes), level: l.Read(rest[1:width], v.ahead[at], d.now, v.rules[v.ruleOf[at]].params)}
			if op := batch[i].op; rest[0] >= codes || op >= rule.Refund {
				a.results[j].say(op, rest[0]/codes)
			}
			a.stale = a.stale || a.results[j].code == rule.Stale
			rest = rest[width:]
		}
		places = places[len(charges):]
		results[i].Answer = a
	}
	return d, nil
}

// decodeBuckets reads the head of the reply, and the times of buckets at the end of the reply. requests is the part
// between them.
func (v *vector) decodeBuckets(ints []int64) (d replyHead, requests []int64, err error) {
	const head, pair = 4, 2
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
	return replyHead{now: ints[0], rebased: ints[1], epoch: ints[3]}, ints[head:end], nil
}

// last returns, for each key, the result of the last query on it.
func (v *vector) last(results []redisstore.Result[answer]) []*bucketResult {
	v.latest = append(v.latest[:0], make([]*bucketResult, len(v.keys))...)
	places := v.places
	for _, i := range v.queries {
		rows := results[i].Answer.results
		for j := range rows {
			v.latest[places[j]] = &rows[j]
		}
		places = places[len(rows):]
	}
	return v.latest
}
