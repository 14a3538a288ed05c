package ratelimit

import (
	"errors"
	"fmt"
	"slices"
)

const (
	// MaxVector is the most requests in one script call, and maxVectorKeys the most buckets unless one request alone has
	// more. They bound how long one call keeps Redis from others: 64 requests on three buckets take 0.1 ms, on 128 buckets 0.7 ms.
	MaxVector     = 64
	maxVectorKeys = 128

	// maxVectorReads is the most keys that are only read in one call. Each takes a microsecond.
	maxVectorReads = 128

	// formsCompared is how many of a call's latest forms a request is compared with. A tenant's requests are mostly alike,
	// so the first comparison usually hits; where they are not, looking further costs more than it saves.
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

// vector is one script call under construction: queries of one hash slot, in order. Equal queries share a form.
type vector struct {
	now      int64 // us; windows are those of this time
	keys     []string
	charges  []*charge      // of keys: each one's first
	params   []params       // of keys
	index    map[string]int // of a key in keys
	queries  []int          // positions in the batch
	requests []any          // the queries' forms
	forms    []*query
	keyArgs  []any // of keys, 5 each
	formArgs []any // of forms
	reads    []string
	readAt   map[string]int // of a key in reads
}

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
			v = &vector{now: now, index: make(map[string]int), readAt: make(map[string]int)}
			open[slot] = v
			all = append(all, v)
		}
		v.add(i, q)
	}
	return all
}

// fits reports whether q can be decided in the same call. Two versions of one rule cannot: a key has one set of
// parameters per call.
func (v *vector) fits(q *query) bool {
	if len(v.queries) == MaxVector {
		return false
	}
	added := 0
	for i := range q.charges {
		c := &q.charges[i]
		at, known := v.index[c.key]
		switch {
		case !known:
			added++
		case !v.agrees(at, c):
			return false
		}
	}
	return len(v.keys)+added <= maxVectorKeys && len(v.reads)+len(q.reads) <= maxVectorReads
}

// agrees reports whether c means the same bucket in the same way as the key's first charge.
func (v *vector) agrees(at int, c *charge) bool {
	first := v.charges[at]
	if first.rule == c.rule && first.zone == c.zone {
		return true
	}
	return first.rule.word() == c.rule.word() && v.params[at] == c.rule.limit.params(c.at(v.now))
}

func (v *vector) add(position int, q *query) {
	v.queries = append(v.queries, position)
	for _, key := range q.reads {
		if _, known := v.readAt[key]; !known {
			v.readAt[key] = len(v.reads)
			v.reads = append(v.reads, key)
		}
	}
	for n := len(v.forms); n > max(0, len(v.forms)-formsCompared); n-- {
		if v.forms[n-1].equal(q) {
			v.requests = append(v.requests, n)
			return
		}
	}
	v.forms = append(v.forms, q)
	v.requests = append(v.requests, len(v.forms))
	v.formArgs = append(v.formArgs, int64(q.op), len(q.charges))
	for i := range q.charges {
		c := &q.charges[i]
		at, known := v.index[c.key]
		if !known {
			at = len(v.keys)
			v.index[c.key] = at
			v.keys = append(v.keys, c.key)
			v.charges = append(v.charges, c)
			p := c.rule.limit.params(c.at(v.now))
			v.params = append(v.params, p)
			args := c.rule.args
			if args == nil {
				args = c.rule.boxed(p)
			}
			v.keyArgs = append(v.keyArgs, args...)
		}
		v.formArgs = append(v.formArgs, at+1, c.cost)
		if q.op == opRefund {
			v.formArgs = append(v.formArgs, c.taken)
		}
	}
}

// equal reports whether q asks the same as other. Versions of a rule need not be told apart here: fits does that.
func (q *query) equal(other *query) bool {
	return q.op == other.op && slices.EqualFunc(q.charges, other.charges, func(a, b charge) bool {
		return a.cost == b.cost && a.taken == b.taken && a.key == b.key
	})
}

// call is the script call. now is the time to use in us; 0 is the server's.
func (v *vector) call(now int64) Call {
	args := make([]any, 0, 3+len(v.keyArgs)+len(v.formArgs)+len(v.requests))
	args = append(args, now, len(v.reads), len(v.forms))
	args = append(args, v.keyArgs...)
	args = append(args, v.formArgs...)
	keys := v.keys
	if len(v.reads) > 0 {
		keys = slices.Concat(v.keys, v.reads)
	}
	return Call{Keys: keys, Args: append(args, v.requests...), Texts: len(v.reads)}
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
	ints := reply.Ints
	want, charged := 2+len(v.keys), 0
	for _, i := range v.queries {
		want++
		charged += len(batch[i].charges)
		for j := range batch[i].charges {
			want += batch[i].charges[j].rule.limit.width()
		}
	}
	if len(ints) != want || len(reply.Texts) != len(v.reads) {
		return decoded{}, fmt.Errorf("%w: a reply of %d integers and %d strings, want %d and %d", errScript,
			len(ints), len(reply.Texts), want, len(v.reads))
	}
	d := decoded{now: ints[0], rebased: ints[1], ahead: ints[2 : 2+len(v.keys)], answers: make([]answer, len(v.queries))}
	rest, rows := ints[2+len(v.keys):], make([]row, charged)
	for n, i := range v.queries {
		charges := batch[i].charges
		a := answer{now: d.now, allowed: rest[0] == 1, rows: rows[:len(charges):len(charges)]}
		rest, rows = rest[1:], rows[len(charges):]
		for j := range charges {
			l, at := charges[j].rule.limit, v.index[charges[j].key]
			width := l.width()
			a.rows[j] = row{code: code(rest[0]), st: l.read(rest[1:width], d.ahead[at], d.now, v.params[at])}
			a.stale = a.stale || a.rows[j].code == codeStale
			rest = rest[width:]
		}
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
