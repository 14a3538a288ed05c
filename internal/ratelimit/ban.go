package ratelimit

import "github.com/quotasvc/quotasvc/internal/ratelimit/rule"

const (
	// unknownBan is the value of bucketResult.banned if the script returns no ban, because the request was a refund
	// or a charge after the fact.
	unknownBan = -1

	// maxLocalBans is the largest number of buckets in a stripe that have a ban, or denials that count towards a ban. A
	// process has up to 8,192 such buckets, with up to 8 KB of times each. If a stripe is full, a new bucket replaces
	// another bucket, if possible one without a ban.
	maxLocalBans = 128
)

// localBan is the ban of a bucket in this process, or its denials that count towards a ban. In local mode there is no
// other state. With Redis it is a copy from the last reply, which the process uses while Redis is away.
type localBan struct {
	rule.BanState

	of rule.Ban
}

// say stores in r the second value that the script returns together with a code. The meaning of this value depends on
// the operation.
func (r *bucketResult) say(o rule.Op, more int64) {
	switch o {
	case rule.Late:
		r.taken, r.banned = more, unknownBan
	case rule.Refund, rule.Raise:
		r.banned = unknownBan
	case rule.Consume, rule.Peek:
		r.banned = more
	}
}

// judge stores in r the time until the ban of c's bucket ends. If r denies a Consume and the bucket is not banned,
// judge counts the denial, as the script does. The caller holds the lock.
func (l *localState) judge(o rule.Op, c *charge, now int64, r *bucketResult) {
	if o != rule.Consume && o != rule.Peek || r.code > rule.Denied {
		return
	}
	shard, ban := l.stripe(c.tag), c.rule.Ban
	known := shard.bans[c.key]
	r.banned = known.Left(ban, now)
	counts := r.banned == 0 && o == rule.Consume && r.code == rule.Denied
	if counts {
		r.banned = known.Deny(ban, now)
	}
	if counts || r.banned == ban.For.Microseconds() { // Deny changed known, or Left may have shortened its ban
		known.of = ban
		shard.putBan(c.key, known, now)
	}
}

// observeBan copies the ban from a reply of Redis to this process. The caller holds the lock.
func (s *stripe) observeBan(key string, of *rule.Rule, r *bucketResult, now int64) {
	switch {
	case r.banned > 0:
		s.putBan(key, localBan{rule.BannedFor(r.banned, now), of.Ban}, now)
	case r.banned == 0 && r.code <= rule.Denied:
		delete(s.bans, key)
	}
}

// putBan stores a ban. The caller holds the lock.
func (s *stripe) putBan(key string, b localBan, now int64) {
	if s.bans == nil {
		s.bans = make(map[string]localBan)
	}
	if _, known := s.bans[key]; !known && len(s.bans) >= maxLocalBans {
		s.dropBans(now)
	}
	s.bans[key] = b
}

// dropBans drops the entries whose ban or denials no longer count. If there are no such entries, it drops one entry,
// if possible one without a ban.
func (s *stripe) dropBans(now int64) {
	least, room := "", false
	for key, b := range s.bans {
		switch {
		case b.Over(b.of, now):
			delete(s.bans, key)
			room = true
		case least == "" || b.Left(b.of, now) == 0:
			least = key
		}
	}
	if !room {
		delete(s.bans, least)
	}
}

// appendBans appends the bans of v's rules in the form that the script reads.
func (v *vector) appendBans(args []any) []any {
	for i := range v.rules {
		if r := v.rules[i].rule; r.Ban.After > 0 {
			args = append(args, r.Ban.After, r.Ban.Within.Microseconds(), r.Ban.For.Microseconds())
		}
	}
	args = append(args, len(v.banning))
	for _, at := range v.banning {
		args = append(args, at+1)
	}
	return args
}

// withBans returns keys, followed by the keys of the bans.
func (v *vector) withBans(keys []string) []string {
	keys = append(make([]string, 0, len(keys)+len(v.banning)), keys...)
	for _, at := range v.banning {
		keys = append(keys, rule.BanKey(v.keys[at]))
	}
	return keys
}

// learnBan remembers that c's bucket is banned, so that every cost is denied from memory. For a sliding log it
// remembers only the denied cost, because only Redis can compute the time to wait for another cost.
func (l *Limiter) learnBan(c *charge, v *Verdict, asOf uint64, asked int64) {
	every, wait := *c, v.Banned
	if every.cost = 1; c.rule.Kind == rule.KindSlidingLog {
		every.cost, wait = c.cost, v.RetryAfter
	}
	l.denials.remember(&every, asOf, asked, wait)
}

// ban sets v to banned, for the given number of µs.
func (v *Verdict) ban(us int64) {
	v.Allowed, v.Delay, v.Banned = false, 0, rule.Micros(us)
	v.RetryAfter = max(v.RetryAfter, v.Banned)
}
