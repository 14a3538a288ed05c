package ratelimit

import (
	"context"
	"time"

	"github.com/quotasvc/quotasvc/internal/kit/backoff"
	"github.com/quotasvc/quotasvc/internal/ratelimit/rule"
	"github.com/quotasvc/quotasvc/internal/store/redisstore"
)

// What a process has charged or leased itself while Redis was away is owed to Redis. It is sent before the next request
// on the bucket that Redis decides (see Limiter.raise and Limiter.lackingLeases), or by a goroutine, which runs while
// something is owed. So other processes also know the charges of a process that gets no more requests.

// carryEvery is the time between two tries to send what is owed. Until a try succeeds, other processes may admit tokens
// that this process has admitted already. While Redis is away, the tries send it one probe in redisstore.RetryAfter.
const carryEvery = time.Second

// returnFor is the time after which all processes have found out that Redis is back, and have sent what they owe. They
// find it out within redisstore.RetryAfter, begin to send within carryEvery, and send 30,000 buckets in a second.
const returnFor = redisstore.RetryAfter + 2*carryEvery

// carryOn starts the goroutine that sends what is owed, if it does not run. After Stop it does nothing.
func (l *Limiter) carryOn() {
	if l.stopping.Err() == nil && l.carrying.CompareAndSwap(false, true) {
		l.background.run(func() {
			for l.owing() && backoff.Sleep(l.stopping, carryEvery) {
				l.carry(l.stopping)
			}
			l.carrying.Store(false)
			if l.owing() { // it was owed just now
				l.carryOn()
			}
		})
	}
}

// owing reports whether something is owed.
func (l *Limiter) owing() bool { return l.local.owing.Load() > 0 || l.leases.table.owing.Load() > 0 }

// carry sends what is owed to the shards that answer, and to those whose next request finds out whether they do. A peek
// at a bucket or a count of its leases does it.
func (l *Limiter) carry(ctx context.Context) {
	asked := func(key string) bool {
		return ctx.Err() == nil && (!l.store.IsAway(key) || l.store.IsReturning(key, 0))
	}
	for _, q := range l.local.owedQueries(l.store.IsCluster(), asked) {
		if asked(q.charges[0].key) { // a peek before this one may have failed
			_, _ = l.ask(ctx, l.store.QueueDeadline(ctx), &q) // what fails stays owed
		}
	}
	for _, c := range l.leases.table.owed(l.micros(), asked) {
		if asked(c.id.key()) {
			_, _ = l.askLease(ctx, c)
		}
	}
}

// owes reports whether Redis may lack charges of c's bucket.
func (l *localState) owes(c *charge) bool {
	shard := l.stripe(c.tag)
	shard.mu.Lock()
	defer shard.mu.Unlock()
	if _, owed := shard.owed[c.key]; owed {
		return true
	}
	l.unsureMu.Lock()
	defer l.unsureMu.Unlock()
	return len(l.unsure[l.epochs.key(c.tag)]) > 0
}

// owedQueries returns peeks at the buckets of which Redis lacks charges and that the function asked accepts. On a
// cluster a peek has the buckets of one hash tag.
func (l *localState) owedQueries(cluster bool, asked func(key string) bool) []query {
	var all []query
	l.unsureMu.Lock()
	for _, calls := range l.unsure {
		if c := calls[0].all[0].charge; asked(c.key) { // a peek at any bucket repeats all calls of its epoch
			all = append(all, query{op: rule.Peek, fresh: true, charges: []charge{c}})
		}
	}
	l.unsureMu.Unlock()
	last := make(map[string]int) // by hash tag: the index of the query that is being filled
	for i := range l.stripes {
		shard := &l.stripes[i]
		shard.mu.Lock()
		for key, c := range shard.owed {
			if !asked(key) {
				continue
			}
			tag := ""
			if cluster {
				tag = c.tag
			}
			at, known := last[tag]
			if !known || len(all[at].charges) == MaxCharges {
				at = len(all)
				last[tag] = at
				all = append(all, query{op: rule.Peek, fresh: true})
			}
			all[at].charges = append(all[at].charges, c)
		}
		shard.mu.Unlock()
	}
	return all
}
