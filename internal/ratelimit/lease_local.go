package ratelimit

import (
	"cmp"
	"math"
	"slices"
	"sync"

	"github.com/quotasvc/quotasvc/internal/ratelimit/rule"
)

// fullSweepEvery is the minimum time, in µs, between two checks of all leases of a full table for their end.
const fullSweepEvery = 1_000_000

// leaseTable has the leases of this process. In local mode there is no other state. With Redis it has the leases that
// this replica granted or renewed there, with which it continues alone when Redis is away. It also has the leases
// that it granted alone since then.
type leaseTable struct {
	mu      sync.Mutex
	max     int
	held    int // leases in all buckets, including ended ones that are not dropped yet
	swept   int64
	buckets map[string]*leaseBucket
}

// leaseBucket has the leases of one bucket. All times are in µs of this process's clock.
type leaseBucket struct {
	rule    string
	leases  map[string]heldLease
	soonest int64 // no lease ends before this time
	epoch   int64 // of the data in Redis that answered last; 0 if there was no answer

	// These are from the last reply of Redis: the number of all held leases, the number of those in this table, and
	// the end of the last lease. The reply is used until that end. The other leases are of other replicas, and their
	// ends are unknown here.
	reported, reportedOwn int64
	reportedUntil         int64
}

type heldLease struct {
	ends  int64
	away  bool  // decided here while Redis was away: Redis may lack it, or have an earlier end
	epoch int64 // of the data in Redis that has it, or, if away, that would have it; 0 if there is none
}

func newLeaseTable(maximum int) *leaseTable {
	if maximum <= 0 {
		maximum = DefaultMaxLocalLevels
	}
	return &leaseTable{max: maximum, buckets: make(map[string]*leaseBucket)}
}

// decide does the script's work in this process, on a bucket of capacity leases.
func (t *leaseTable) decide(c *leaseCall, now, capacity int64) leaseReply {
	t.mu.Lock()
	defer t.mu.Unlock()
	key, name := c.id.key(), c.id.name()
	b := t.current(key, now)
	mine, isHeld := b.leases[name]
	isHeld = isHeld && c.op != leaseCount // a count asks about one more lease
	others := int64(0)
	if c.rule != nil {
		others = b.others(now, c.rule.Burst, capacity)
	}
	held := int64(len(b.leases)) + others
	r := leaseReply{now: now}
	switch {
	case c.op == leaseRelease && isHeld:
		t.drop(b, name)
		held--
	case c.op == leaseRelease, c.op == leaseRenew && !isHeld:
		r.code = leaseNotHeld
	case c.op == leaseAcquire && isHeld:
		r.code, r.ends = leaseHeld, mine.ends-now
	case !isHeld && held >= capacity:
		r.code = leaseFull
	case c.op == leaseCount:
	case !isHeld && t.crowded(now):
		r.code = leaseNoRoom
	default:
		if !isHeld {
			held++
		}
		r.ends = c.ttl.Microseconds()
		t.put(b, c, name, heldLease{ends: now + r.ends, away: true, epoch: b.epoch})
	}
	r.held = held
	if c.op != leaseRelease && held >= capacity {
		r.frees = b.frees(now, held-capacity)
	}
	t.tidy(key, b)
	return r
}

// observe applies a reply of Redis. now is this process's clock.
func (t *leaseTable) observe(c *leaseCall, r leaseReply, now int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	key, name := c.id.key(), c.id.name()
	b := t.current(key, now)
	b.epoch = cmp.Or(r.epoch, b.epoch)
	switch {
	case c.op == leaseCount:
	case r.code == leaseDone || r.code == leaseHeld:
		if _, known := b.leases[name]; known || t.held < t.max {
			t.put(b, c, name, heldLease{ends: now + r.ends, epoch: b.epoch})
		}
	case r.code == leaseNotHeld, c.op == leaseAdopt: // an adoption found no room
		t.drop(b, name)
	}
	b.reported, b.reportedOwn, b.reportedUntil = r.held, int64(len(b.leases)), now+r.last
	t.tidy(key, b)
}

// away reports whether this process holds the lease with an end that Redis may not have.
func (t *leaseTable) away(c *leaseCall, now int64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	b := t.buckets[c.id.key()]
	if b == nil {
		return false
	}
	mine, isHeld := b.leases[c.id.name()]
	return isHeld && mine.away && mine.ends > now
}

// knownLease is a lease that was lost with the data in Redis.
type knownLease struct {
	name string
	left int64 // us
}

// lost returns the leases of a bucket that belong to data of another epoch.
func (t *leaseTable) lost(key string, epoch, now int64) (all []knownLease) {
	t.mu.Lock()
	defer t.mu.Unlock()
	b := t.buckets[key]
	if b == nil {
		return nil
	}
	for name, l := range b.leases {
		if l.epoch != 0 && l.epoch != epoch && l.ends > now {
			all = append(all, knownLease{name, l.ends - now})
		}
	}
	return all
}

// restored records that the data of this epoch contains the named leases of a bucket.
func (t *leaseTable) restored(key string, names []string, epoch int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	b := t.buckets[key]
	if b == nil {
		return
	}
	for _, name := range names {
		if l, known := b.leases[name]; known {
			l.away, l.epoch = false, epoch
			b.leases[name] = l
		}
	}
}

// byRule returns the number of held leases per rule.
func (t *leaseTable) byRule(now int64) map[string]int {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := make(map[string]int)
	for _, b := range t.buckets {
		for _, l := range b.leases {
			if l.ends > now {
				all[b.rule]++
			}
		}
	}
	return all
}

// others returns the number of leases of other replicas that count against this process's share of the rule. It is
// the share's part of all leases in the last reply of Redis, minus those in this table.
func (b *leaseBucket) others(now, capacity, share int64) int64 {
	if share >= capacity || b.reportedUntil <= now {
		return 0
	}
	return max(0, rule.CeilDiv(b.reported*share, capacity)-b.reportedOwn)
}

// frees returns the time until more than n leases have ended.
func (b *leaseBucket) frees(now, n int64) int64 {
	ends := make([]int64, 0, len(b.leases))
	for _, l := range b.leases {
		ends = append(ends, l.ends)
	}
	switch {
	case n < int64(len(ends)):
	case b.reportedUntil > now: // other replicas hold leases
		return b.reportedUntil - now
	default: // this process has no share
		return leaseRetryMax.Microseconds()
	}
	slices.Sort(ends)
	return ends[n] - now
}

// current returns the bucket of a key. It first drops the leases that have ended. The caller holds the lock.
func (t *leaseTable) current(key string, now int64) *leaseBucket {
	b := t.buckets[key]
	if b == nil {
		t.sweep(now, sweepSample)
		b = &leaseBucket{leases: make(map[string]heldLease)}
		t.buckets[key] = b
		return b
	}
	if b.reportedUntil <= now {
		b.reported = 0
	}
	if b.soonest > now {
		return b
	}
	b.soonest = math.MaxInt64
	for name, l := range b.leases {
		if l.ends <= now {
			t.drop(b, name)
		} else {
			b.soonest = min(b.soonest, l.ends)
		}
	}
	return b
}

// sweep calls tidy for n buckets, so old ones are dropped as fast as new ones come. A range over a map starts at a
// random element.
func (t *leaseTable) sweep(now int64, n int) {
	for key := range t.buckets {
		if n--; n < 0 {
			return
		}
		t.tidy(key, t.current(key, now))
	}
}

// crowded reports whether the process holds the largest allowed number of leases.
func (t *leaseTable) crowded(now int64) bool {
	if t.held >= t.max && now-t.swept >= fullSweepEvery {
		t.swept = now
		for key := range t.buckets {
			t.current(key, now)
		}
	}
	return t.held >= t.max
}

// tidy drops a bucket without leases, unless its last reply of Redis is still used and there is room.
func (t *leaseTable) tidy(key string, b *leaseBucket) {
	if len(b.leases) == 0 && (b.reported == 0 || len(t.buckets) > t.max) {
		delete(t.buckets, key)
	}
}

func (t *leaseTable) put(b *leaseBucket, c *leaseCall, name string, l heldLease) {
	if _, known := b.leases[name]; !known {
		t.held++
	}
	if len(b.leases) == 0 || l.ends < b.soonest {
		b.soonest = l.ends
	}
	b.rule, b.leases[name] = c.rule.Metric, l
}

func (t *leaseTable) drop(b *leaseBucket, name string) {
	if _, known := b.leases[name]; known {
		delete(b.leases, name)
		t.held--
	}
}
