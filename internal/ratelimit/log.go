package ratelimit

import (
	"slices"
	"sort"
	"time"
)

const (
	// maxLog bounds a log: 1,000 tokens are 7 KB in Redis for each bucket, copied by every charge.
	maxLog = 1000

	// maxLogPeriod bounds how long each of them is kept.
	maxLogPeriod = 31 * day
)

// slidingLog remembers when each token was taken: no window's time, wherever it begins, passes more than the limit.
//
// Invariants: tokens 1..maxLog; length up to maxLogPeriod; the script's logs are what settle says they are.
type slidingLog struct {
	tokens int64
	length int64 // us
}

func newSlidingLog(r Rate) slidingLog {
	return slidingLog{tokens: r.Count, length: r.Period.Microseconds()}
}

func (l slidingLog) capacity() int64 { return l.tokens }

func (l slidingLog) params(moment) params { return params{l.tokens, l.length} }

func (l slidingLog) width() int { return 5 }

func (l slidingLog) read(row []int64, ahead, now int64, _ params) settled {
	return settled{now: now, ahead: ahead, used: row[0], told: (*told)(row[1:4])}
}

func (l slidingLog) settle(s state, at moment) settled {
	st := settling(s.ts, at.now)
	log := s.log
	if log == nil && s.used > 0 {
		log = slices.Repeat([]int64{s.ts}, int(min(s.used, maxLog)))
	}
	newest := max(s.ts, at.now)
	log = log[after(log, newest-l.length):]
	if st.rebased {
		log = slices.Clone(log)
		for i := range log {
			log[i] = max(0, log[i]-(s.ts-at.now))
		}
	}
	st.log, st.used = log, int64(len(log))
	return st
}

// after is the position of the first time in log that is later than us.
func after(log []int64, us int64) int {
	return sort.Search(len(log), func(i int) bool { return log[i] > us })
}

func (l slidingLog) fits(st settled, cost int64) bool { return st.used <= l.tokens-cost }

func (l slidingLog) charge(st settled, cost int64) settled {
	for range cost {
		st.log = append(st.log, st.now+st.ahead)
	}
	st.used += cost
	return st
}

// refund takes the newest tokens that are not younger than the charge: those are its own, or they are gone.
func (l slidingLog) refund(st settled, cost, at int64) settled {
	behind := len(st.log)
	if at != unknownTime {
		behind = after(st.log, at)
	}
	first := max(0, behind-int(min(cost, maxLog)))
	st.log = slices.Concat(st.log[:first], st.log[behind:])
	st.used = int64(len(st.log))
	return st
}

func (l slidingLog) store(st settled, now int64) (s state, until int64) {
	s = state{ts: now + st.ahead, used: st.used, log: st.log}
	switch {
	case st.used == 0:
		until = s.ts
	case st.told != nil: // the script keeps the log: here all counts as taken with the newest
		until = now + st.told.reset().Microseconds()
		s.ts = until - l.length
	default:
		until = st.log[len(st.log)-1] + l.length + now - st.now
	}
	return s, until
}

func (l slidingLog) remaining(st settled) int64 { return max(0, l.tokens-st.used) }

func (l slidingLog) wait(st settled, cost int64) time.Duration {
	switch {
	case l.fits(st, cost):
		return 0
	case st.told == nil:
		leaves := st.log[st.used+cost-l.tokens-1] + l.length
		return micros(leaves - st.now)
	case cost == l.tokens:
		return st.told.reset()
	case cost == l.remaining(st)+1:
		return st.told.next()
	default:
		return st.told.retry()
	}
}

func (l slidingLog) delay(settled, int64) time.Duration { return 0 }

func (l slidingLog) share(p portion) limit {
	l.tokens = p.tokens
	return l
}

func (l slidingLog) scale(s state, from limit) state {
	return state{ts: s.ts, used: fraction(s.used, from.capacity(), l.tokens)}
}
