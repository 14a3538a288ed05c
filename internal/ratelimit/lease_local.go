package ratelimit

import (
	"cmp"
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/quotasvc/quotasvc/internal/ratelimit/rule"
)

// fullSweepEvery is the minimum time, in µs, between two searches for ended leases in all buckets of a full table.
const fullSweepEvery = 1_000_000

// leaseTable has the leases of this process. In local mode there is no other state. With Redis it has copies of the
// leases that this process has acquired or renewed in Redis. When Redis is away, the process decides with these
// copies, and adds the leases that it grants by itself.
type leaseTable struct {
	mu      sync.Mutex
	max     int
	held    int // leases in all buckets, including ended ones that are not dropped yet
	swept   int64
	owing   atomic.Int64 // number of leases that are away
	buckets map[string]*leaseBucket
}

// leaseBucket has the leases of one bucket. All times are in µs of this process's clock.
type leaseBucket struct {
	count   leaseCall // counts the leases of this bucket
	leases  map[string]heldLease
	soonest int64 // no lease ends before this time
	epoch   int64 // epoch of the data in Redis at the last reply; 0 if there was no reply

	// These fields are from the last reply of Redis. They are the number of held leases, the number of them in this
	// table, and the time at which the last of them ends. The numbers are used until this time. The other leases belong
	// to other replicas, and this process does not know when they end.
	reported, reportedOwn int64
	reportedUntil         int64
}

type heldLease struct {
	ends  int64
	away  bool  // granted or renewed in this process: Redis may lack the lease, or have an earlier end
	epoch int64 // epoch of the data in Redis that has the lease or, if away, should have it; 0 if not known
}

func newLeaseTable(maximum int) *leaseTable {
	if maximum <= 0 {
		maximum = DefaultMaxLocalLevels
	}
	return &leaseTable{max: maximum, buckets: make(map[string]*leaseBucket)}
}

// decide decides a call in this process, as the script does in Redis. capacity is the number of leases that the bucket
// may hold.
func (t *leaseTable) decide(c *leaseCall, now, capacity int64) leaseReply {
	t.mu.Lock()
	defer t.mu.Unlock()
	key, name := c.id.key(), c.id.name()
	b := t.current(key, now)
	mine, isHeld := b.leases[name]
	isHeld = isHeld && c.op != leaseCount // a count reports whether one more lease could be granted
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

// observe updates the table with a reply of Redis. now is the time by this process's clock.
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

// find returns the lease of c, if this table has it and it has not ended.
func (t *leaseTable) find(c *leaseCall, now int64) (mine heldLease, isHeld bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if b := t.buckets[c.id.key()]; b != nil && b.leases[c.id.name()].ends > now {
		return b.leases[c.id.name()], true
	}
	return heldLease{}, false
}

// knownLease is a lease that this process knows, and that Redis lacks.
type knownLease struct {
	name       string
	left, ends int64 // us
}

// lacking returns the leases of a bucket that Redis lacks or knows with an earlier end: those that this process has
// granted or renewed itself, and those of another epoch than that of the present data of Redis, if it is known.
func (t *leaseTable) lacking(key string, epoch, now int64) (all []knownLease) {
	t.mu.Lock()
	defer t.mu.Unlock()
	b := t.buckets[key]
	if b == nil {
		return nil
	}
	for name, l := range b.leases {
		if (l.away || epoch != 0 && l.epoch != 0 && l.epoch != epoch) && l.ends > now {
			all = append(all, knownLease{name, l.ends - now, l.ends})
		}
	}
	return all
}

// restored records that Redis's data with this epoch contains leases of a bucket, unless they were renewed since.
func (t *leaseTable) restored(key string, all []knownLease, epoch int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	b := t.buckets[key]
	if b == nil {
		return
	}
	for _, was := range all {
		if l := b.leases[was.name]; l.ends == was.ends {
			t.put(b, &b.count, was.name, heldLease{ends: l.ends, epoch: epoch})
		}
	}
}

// owed returns calls that count the leases of the buckets with leases that Redis lacks, if the function asked accepts
// the key.
func (t *leaseTable) owed(now int64, asked func(key string) bool) (all []leaseCall) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for key := range t.buckets {
		if !asked(key) {
			continue
		}
		b := t.current(key, now)
		for _, l := range b.leases {
			if l.away {
				all = append(all, b.count)
				break
			}
		}
		t.tidy(key, b)
	}
	return all
}

// byRule returns the number of held leases per rule.
func (t *leaseTable) byRule(now int64) map[string]int {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := make(map[string]int)
	for _, b := range t.buckets {
		for _, l := range b.leases {
			if l.ends > now {
				all[b.count.rule.Metric]++
			}
		}
	}
	return all
}

// others returns the number of other replicas' leases that count against this process's share of the capacity. It
// multiplies the number of leases in the last reply of Redis by share/capacity, and subtracts the leases that were in
// this table at that time.
func (b *leaseBucket) others(now, capacity, share int64) int64 {
	if share >= capacity || b.reportedUntil <= now {
		return 0
	}
	return max(0, rule.CeilDiv(b.reported*share, capacity)-b.reportedOwn)
}

// frees returns the time, in µs, until more than n leases have ended.
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

// current returns the bucket of a key, without the leases that have ended. If there is no bucket, it creates one. The
// caller holds the lock.
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

// sweep calls tidy for n buckets, so that unused buckets are dropped as fast as new buckets are added. The n buckets
// are random, because a range over a map starts at a random element.
func (t *leaseTable) sweep(now int64, n int) {
	for key := range t.buckets {
		if n--; n < 0 {
			return
		}
		t.tidy(key, t.current(key, now))
	}
}

// crowded reports whether the process holds the largest allowed number of leases. If the table looks full, crowded
// first drops the ended leases of all buckets, at most once in fullSweepEvery.
func (t *leaseTable) crowded(now int64) bool {
	if t.held >= t.max && now-t.swept >= fullSweepEvery {
		t.swept = now
		for key := range t.buckets {
			t.current(key, now)
		}
	}
	return t.held >= t.max
}

// tidy drops a bucket without leases. It keeps the bucket if the numbers of the last reply are still used, unless the
// table has too many buckets.
func (t *leaseTable) tidy(key string, b *leaseBucket) {
	if len(b.leases) == 0 && (b.reported == 0 || len(t.buckets) > t.max) {
		delete(t.buckets, key)
	}
}

func (t *leaseTable) put(b *leaseBucket, c *leaseCall, name string, l heldLease) {
	t.drop(b, name)
	t.held++
	if l.away {
		t.owing.Add(1)
	}
	if len(b.leases) == 0 || l.ends < b.soonest {
		b.soonest = l.ends
	}
	b.leases[name] = l
	b.count = leaseCall{op: leaseCount, id: c.id, rule: c.rule}
}

func (t *leaseTable) drop(b *leaseBucket, name string) {
	if l, known := b.leases[name]; known {
		delete(b.leases, name)
		t.held--
		if l.away {
			t.owing.Add(-1)
		}
	}
}
