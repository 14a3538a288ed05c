package ratelimit

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/quotasvc/quotasvc/internal/ratelimit/rule"
	"github.com/quotasvc/quotasvc/internal/redisstore"
	"github.com/quotasvc/quotasvc/lua"
)

// maxLeaseBatch bounds the script calls in one pipeline: 64 of them take Redis under 2 ms.
const maxLeaseBatch = 64

// leaseOp is the operation of a lease call. The values are the script's.
type leaseOp int64

const (
	leaseAcquire leaseOp = 0
	leaseRenew   leaseOp = 1
	leaseAdopt   leaseOp = 2 // renew, or acquire if it is not held
	leaseRelease leaseOp = 3
	leaseCount   leaseOp = 4
)

// String is the operation's label.
func (o leaseOp) String() string {
	switch o {
	case leaseAcquire:
		return "acquire"
	case leaseRenew, leaseAdopt:
		return "renew"
	case leaseRelease:
		return "release"
	default:
		return "count"
	}
}

// leaseCode is the outcome of a lease call. The values are the script's, except for the last one.
type leaseCode int64

const (
	leaseDone    leaseCode = 0
	leaseHeld    leaseCode = 1 // acquire: it was held already
	leaseFull    leaseCode = 2
	leaseNotHeld leaseCode = 3
	leaseNoRoom  leaseCode = 4 // not the script: this process may not hold more
)

// leaseCall is an operation on one lease. rule and ttl are zero for a release.
type leaseCall struct {
	op   leaseOp
	id   LeaseID
	rule *rule.Rule
	ttl  time.Duration
}

// leaseReply is the reply to a leaseCall.
type leaseReply struct {
	now   int64 // us
	code  leaseCode
	ends  int64 // us from now; 0 if the lease is not held
	held  int64 // leases held after the call
	frees int64 // us from now until there is room
	last  int64 // us from now until all leases have ended; 0 if this process decided
}

// leases is a limiter's access to leases in Redis, and its own copies.
type leases struct {
	script *redisstore.Script
	lanes  *redisstore.Lanes[leaseCall, leaseReply]
	table  *leaseTable
}

func newLeases(l *Limiter) *leases {
	s := &leases{table: newLeaseTable(l.cfg.MaxLocalLevels)}
	l.metrics.held.track(func() map[string]int { return s.table.byRule(l.micros()) })
	if l.store != nil {
		s.script = l.store.NewScript("leases", lua.Leases)
		s.lanes = redisstore.NewLanes(l.store, redisstore.Work[leaseCall, leaseReply]{
			Name: "leases", Lanes: 1, MaxBatch: maxLeaseBatch,
			NewSender: func() func(*redisstore.Batch, []leaseCall) []redisstore.Result[leaseReply] { return l.sendLeases },
		})
	}
	return s
}

// askLease gets the answer from Redis. An error that matches redisstore.ErrAway makes the rule's OnBackendError decide.
func (l *Limiter) askLease(ctx context.Context, c leaseCall) (leaseReply, error) {
	r, err := l.leases.lanes.Do(ctx, l.store.QueueDeadline(ctx), c.id.key(), c, nil)
	if err != nil {
		return leaseReply{}, storeError(err)
	}
	return r, nil
}

// sendLeases sends a batch as one pipeline with a script call each.
func (l *Limiter) sendLeases(b *redisstore.Batch, batch []leaseCall) []redisstore.Result[leaseReply] {
	calls := make([]redisstore.Call, len(batch))
	for i := range batch {
		calls[i] = batch[i].call(l.cfg.redisNow())
	}
	results := make([]redisstore.Result[leaseReply], len(batch))
	for i, reply := range b.Run(l.leases.script, calls) {
		r, rebased, err := readLease(reply)
		results[i] = redisstore.Result[leaseReply]{Answer: r, Err: err}
		switch {
		case errors.Is(err, errCorrupt):
			l.corruptLease(batch[i].id.key())
		case rebased:
			l.metrics.rebased.Inc()
		}
		if err == nil && r.code == leaseDone && batch[i].op != leaseCount {
			b.Wrote()
		}
	}
	return results
}

// call returns the script call. now is the time to use in µs; 0 is the server's.
func (c *leaseCall) call(now int64) redisstore.Call {
	capacity, ttl := int64(0), c.ttl.Microseconds()
	if c.rule != nil {
		capacity = c.rule.Burst
	}
	return redisstore.Call{Keys: []string{c.id.key()}, Args: []any{int64(c.op), now, capacity, ttl, c.id.name()}}
}

// readLease reads the script's reply. Its error matches redisstore.ErrAway or redisstore.ErrScript.
func readLease(reply redisstore.Reply) (r leaseReply, rebased bool, err error) {
	const width = 7
	n := reply.Ints
	own, isOwn := errors.AsType[*redisstore.ScriptError](reply.Err)
	switch {
	case isOwn && own.Code == "CORRUPT":
		return r, false, fmt.Errorf("%w: %w", errCorrupt, reply.Err)
	case reply.Err != nil:
		return r, false, reply.Err
	case len(n) != width:
		return r, false, fmt.Errorf("%w: a reply of %d integers, want %d", redisstore.ErrScript, len(n), width)
	default:
		return leaseReply{now: n[0], code: leaseCode(n[2]), ends: n[3], held: n[4], frees: n[5], last: n[6]}, n[1] == 1, nil
	}
}

// corruptLease counts an unreadable bucket, and logs one every corruptLogEvery.
func (l *Limiter) corruptLease(key string) {
	l.metrics.corrupt.Inc()
	now, last := l.micros(), l.corruptLog.Load()
	if (last == 0 || now-last >= corruptLogEvery.Microseconds()) && l.corruptLog.CompareAndSwap(last, now) {
		l.cfg.Log.Error("a stored value is not leases; it is not changed, and its rule is decided as if redis were away", "key", key)
	}
}
