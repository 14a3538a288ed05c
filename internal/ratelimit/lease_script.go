package ratelimit

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quotasvc/quotasvc/internal/lane"
	"github.com/quotasvc/quotasvc/internal/ratelimit/rule"
	"github.com/quotasvc/quotasvc/lua"
)

// maxLeaseBatch is the script calls in one pipeline: 64 of them take Redis under 2 ms.
const maxLeaseBatch = 64

// leaseOp is what to do with a lease. The values are the script's.
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

// leaseCode is what became of it. The values are the script's, but for the last.
type leaseCode int64

const (
	leaseDone    leaseCode = 0
	leaseHeld    leaseCode = 1 // acquire: it was held already
	leaseFull    leaseCode = 2
	leaseNotHeld leaseCode = 3
	leaseNoRoom  leaseCode = 4 // this process may not hold more
)

// leaseCall is a question about one lease; rule and ttl are zero for a release.
type leaseCall struct {
	op   leaseOp
	id   LeaseID
	rule *rule.Rule
	ttl  time.Duration
}

// leaseReply is the answer.
type leaseReply struct {
	now   int64 // us
	code  leaseCode
	ends  int64 // us from now; 0 if the lease is not held
	held  int64 // leases held after the call
	frees int64 // us from now until there is room
	err   error
}

// leases are a limiter's leases: what it asks Redis with, and what it knows by itself.
type leases struct {
	script *Script
	table  *leaseTable
}

func newLeases(l *Limiter) *leases {
	s := &leases{script: NewScript("leases", lua.Leases, l.cfg.Metrics), table: newLeaseTable(l.cfg.MaxLocalLevels)}
	l.metrics.held.track(func() map[string]int { return s.table.byRule(l.ticker.micros()) })
	return s
}

// askLease gets the answer from Redis. Errors that make the rule's OnBackendError decide match errBackend.
func (l *Limiter) askLease(ctx context.Context, c leaseCall) (leaseReply, error) {
	of := func(sh *shard) *lane.Lane[leaseCall, leaseReply] { return sh.leases }
	return through(ctx, l.turn(ctx), l, c.id.key(), c, of, func(r leaseReply) error { return r.err })
}

// processLeases is the lane's work: one pipeline, each call once.
func (l *Limiter) processLeases(ctx context.Context, sh *shard, batch []leaseCall) []leaseReply {
	ctx, cancel := context.WithTimeout(ctx, l.cfg.Budget/2)
	defer cancel()
	out := make([]leaseReply, len(batch))
	if err := l.ready(ctx, sh, batch[0].id.key()); err != nil {
		for i := range out {
			out[i].err = err
		}
		return out
	}
	calls := make([]Call, len(batch))
	for i := range batch {
		calls[i] = batch[i].call(l.cfg.redisNow())
	}
	var away error
	for i, reply := range l.leases.script.RunPipelined(ctx, l.client, calls) {
		r, rebased := readLease(reply)
		switch {
		case errors.Is(r.err, errCorrupt):
			l.corruptLease(batch[i].id.key())
		case blamesShard(r.err):
			away = r.err
		case rebased:
			l.metrics.rebased.Inc()
		}
		if r.err == nil && r.code == leaseDone && batch[i].op != leaseCount {
			sh.breaker.wrote()
		}
		out[i] = r
	}
	sh.breaker.record(l.cfg.Now(), away)
	return out
}

// call is the script call. now is the time to use in us; 0 is the server's.
func (c *leaseCall) call(now int64) Call {
	capacity, ttl := int64(0), c.ttl.Microseconds()
	if c.rule != nil {
		capacity = c.rule.Burst
	}
	return Call{Keys: []string{c.id.key()}, Args: []any{int64(c.op), now, capacity, ttl, c.id.name()}}
}

// readLease reads the script's reply. Its error matches errBackend or errScript.
func readLease(reply Reply) (r leaseReply, rebased bool) {
	const width = 6
	var said redis.Error
	switch {
	case reply.Err == nil && len(reply.Ints) == width:
		n := reply.Ints
		return leaseReply{now: n[0], code: leaseCode(n[2]), ends: n[3], held: n[4], frees: n[5]}, n[1] == 1
	case reply.Err == nil:
		r.err = fmt.Errorf("%w: a reply of %d integers, want %d", errScript, len(reply.Ints), width)
	case errors.As(reply.Err, &said) && redis.HasErrorPrefix(said, "ERR leases:"):
		r.err = fmt.Errorf("%w: %w", errScript, reply.Err)
	case errors.As(reply.Err, &said) && strings.HasPrefix(said.Error(), "CORRUPT leases:"):
		r.err = fmt.Errorf("%w: %w", errCorrupt, reply.Err)
	default:
		r.err = notDecided(reply.Err)
	}
	return r, false
}

// corruptLease counts a bucket that is none, and logs one once in a while.
func (l *Limiter) corruptLease(key string) {
	l.metrics.corrupt.Inc()
	now, last := l.ticker.micros(), l.corruptLog.Load()
	if (last == 0 || now-last >= corruptLogEvery.Microseconds()) && l.corruptLog.CompareAndSwap(last, now) {
		l.cfg.Log.Error("a stored value is not leases: it is left alone, and the rule decides as if redis were away", "key", key)
	}
}
