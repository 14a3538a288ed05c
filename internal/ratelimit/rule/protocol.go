package rule

import (
	"strings"
	"time"
)

// Op is the operation of a request. The script uses the same values.
type Op int64

// These are the operations.
const (
	Consume Op = 0
	Peek    Op = 1
	Refund  Op = 2
	Raise   Op = 3 // raise the level to at least a known level
	Late    Op = 4 // charge after the fact: take the cost, at most the tokens left plus the debt
)

// WithID is added to an operation if the call contains the id of the request.
const WithID = 8

// Params are the parameters of a rule that are sent to the script. Their meaning depends on the kind; see
// lua/limits.lua.
type Params [4]int64

// WithBan is added to the result of Word if the call contains the ban of the rule.
const WithBan = 16

// Word returns a number for the script. It encodes the rule's kind and whether the rule is a shadow rule.
func (r *Rule) Word() int64 {
	if r.Shadow {
		return 2 * int64(r.Kind)
	}
	return 2*int64(r.Kind) + 1
}

// windowSlack is the largest time by which Redis's clock may be behind the estimate of it. A call contains the window
// at the estimate minus windowSlack, and the next window. So one of these windows is the current one, even if the
// call arrives late.
const windowSlack = time.Second

// Params implements Limit.
func (b bucket) Params(Moment) Params { return Params{b.tokens, b.num, b.s, short(b.s)} }

// Width implements Limit.
func (b bucket) Width() int { return 2 }

// Read implements Limit.
func (b bucket) Read(row []int64, ahead, now int64, _ Params) Level {
	return Level{Now: now, Used: row[0], Ahead: ahead}
}

// Params implements Limit.
func (w fixedWindow) Params(at Moment) Params {
	if w.even(at.Zone) {
		return Params{w.tokens, w.length, w.phase, 0}
	}
	start, end := w.bounds(at.Now-windowSlack.Microseconds(), at.Zone)
	_, next := w.bounds(end, at.Zone)
	return Params{w.tokens, start, end, next}
}

// Width implements Limit.
func (w fixedWindow) Width() int { return 2 }

// Read implements Limit.
func (w fixedWindow) Read(row []int64, ahead, now int64, sent Params) Level {
	st := Level{Now: now, Used: row[0], Ahead: ahead, start: sent[1], end: sent[2]}
	switch {
	case sent[3] == 0:
		st.start, st.end = w.bounds(now+ahead, nil)
	case now+ahead >= st.end:
		st.start, st.end = st.end, sent[3]
	}
	return st
}

// Params implements Limit.
func (w slidingWindow) Params(Moment) Params {
	return Params{w.tokens, w.ticks, w.tick, short(w.length() / 1000)}
}

// Width implements Limit.
func (w slidingWindow) Width() int { return 3 }

// Read implements Limit.
func (w slidingWindow) Read(row []int64, ahead, now int64, _ Params) Level {
	return w.within(Level{Now: now, Ahead: ahead, Used: row[0], Prev: row[1]})
}

// Params implements Limit.
func (l slidingLog) Params(Moment) Params { return Params{l.tokens, l.length, short(l.length / 1000)} }

// Width implements Limit.
func (l slidingLog) Width() int { return 5 }

// Read implements Limit.
func (l slidingLog) Read(row []int64, ahead, now int64, _ Params) Level {
	return Level{Now: now, Ahead: ahead, Used: row[0], fromScript: (*logAnswer)(row[1:4])}
}

// mantissas has the same numbers as MANTISSAS in lua/limits.lua.
const mantissas = "\x01\x02\x03\x04\x05\x06\x08\x09\x0c\x0f\x12\x18\x19\x24\x48\x4b"

// short returns the short form of n, which lua/limits.lua describes.
func short(n int64) int64 {
	m, e := n, int64(0)
	for m%10 == 0 {
		m, e = m/10, e+1
	}
	if i := strings.IndexByte(mantissas, byte(m)); m < 128 && i >= 0 && e >= 1 && e <= 8 {
		return int64(i)*8 + e - 1
	}
	for ; e > 7; e-- {
		m *= 10
	}
	return 128 + m*8 + e
}
