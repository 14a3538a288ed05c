package rule

import (
	"slices"
	"sort"
	"time"
)

const (
	// maxLog is the largest number of tokens in a log. 1,000 tokens take 7 KB in Redis for each bucket, and every
	// charge copies them.
	maxLog = 1000

	// maxLogPeriod is the longest length of a log, that is, the longest time for which a token is kept in it.
	maxLogPeriod = 31 * Day
)

// slidingLog has the parameters of a sliding log, which stores the time of each taken token. In every interval of its
// length it passes at most the limit.
//
// Invariants: tokens is at least 1, tokens+debt at most maxLog, and length at most maxLogPeriod. A log from the
// script is equal to the log that Advance computes.
type slidingLog struct {
	counts

	length int64 // us
}

func newSlidingLog(r Rate, debt int64) slidingLog {
	return slidingLog{counts: counts{r.Count, debt}, length: r.Period.Microseconds()}
}

// Advance implements Limit.
func (l slidingLog) Advance(s State, at Moment) Level {
	st := advancing(s.At, at.Now)
	log := s.Log
	if log == nil && s.Used > 0 {
		log = slices.Repeat([]int64{s.At}, int(min(s.Used, maxLog)))
	}
	newest := max(s.At, at.Now)
	log = log[after(log, newest-l.length):]
	if st.Rebased {
		log = slices.Clone(log)
		for i := range log {
			log[i] = max(0, log[i]-(s.At-at.Now))
		}
	}
	st.log, st.Used = log, int64(len(log))
	st.MustStore = s.Unit != l.length && s.Used > 0
	return st
}

// after returns the index of the first element of log that is later than us.
func after(log []int64, us int64) int {
	return sort.Search(len(log), func(i int) bool { return log[i] > us })
}

// Charge implements Limit.
func (l slidingLog) Charge(st Level, cost, at int64) Level {
	asOf := st.Now + st.Ahead
	if at == UnknownTime || at > asOf {
		at = asOf
	}
	if at <= asOf-l.length {
		return st
	}
	tokens, behind := slices.Repeat([]int64{at}, int(cost)), after(st.log, at)
	if behind == len(st.log) {
		st.log = append(st.log, tokens...)
	} else {
		st.log = slices.Concat(st.log[:behind], tokens, st.log[behind:])
	}
	st.Used += cost
	return st
}

// Refund implements Limit. It removes tokens that were taken at or before the time of the charge, the newest first.
// These are the charge's own tokens, if the log still has them.
func (l slidingLog) Refund(st Level, cost, at int64) Level {
	behind := len(st.log)
	if at != UnknownTime {
		behind = after(st.log, at)
	}
	first := max(0, behind-int(min(cost, maxLog)))
	st.log = slices.Concat(st.log[:first], st.log[behind:])
	st.Used = int64(len(st.log))
	return st
}

// Store implements Limit.
func (l slidingLog) Store(st Level, now int64) (s State, until int64) {
	s = State{At: now + st.Ahead, Used: st.Used, Unit: l.length, Log: st.log}
	switch {
	case st.Used == 0:
		until = s.At
	case st.fromScript != nil: // the log is in Redis; here all tokens count as taken at the time of the newest token
		until = now + st.fromScript.reset().Microseconds()
		s.At = until - l.length
	default:
		until = st.log[len(st.log)-1] + l.length + now - st.Now
	}
	return s, until
}

// Wait implements Limit.
func (l slidingLog) Wait(st Level, cost int64) time.Duration {
	switch {
	case l.fits(st, cost):
		return 0
	case st.fromScript == nil:
		leaves := st.log[st.Used+cost-l.tokens-1] + l.length
		return Micros(leaves - st.Now)
	case cost == l.tokens:
		return st.fromScript.reset()
	case cost == Remaining(l, st)+1:
		return st.fromScript.next()
	default:
		return st.fromScript.retry()
	}
}

// Share implements Limit.
func (l slidingLog) Share(p Portion) Limit {
	l.counts = l.share(p)
	return l
}

// Scale implements Limit.
func (l slidingLog) Scale(s State, from Limit) State {
	return State{At: s.At, Used: convert(s.Used, from.Capacity(), l.tokens), Unit: s.Unit}
}
