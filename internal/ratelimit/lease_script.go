package ratelimit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/quotasvc/quotasvc/internal/ratelimit/rule"
	"github.com/quotasvc/quotasvc/internal/store/redisstore"
	"github.com/quotasvc/quotasvc/lua"
)

// maxLeaseBatch is the largest number of script calls in one pipeline. 64 calls take Redis less than 2 ms.
const maxLeaseBatch = 64

// leaseOp is the operation of a lease call. The script uses the same values.
type leaseOp int64

const (
	leaseAcquire leaseOp = 0
	leaseRenew   leaseOp = 1
	leaseAdopt   leaseOp = 2 // renew, or acquire if the lease is not held
	leaseRelease leaseOp = 3
	leaseCount   leaseOp = 4
	leaseRestore leaseOp = 5 // restore leases that Redis lacks, even beyond the capacity
)

// String returns the value of the label operation in metrics.
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

// leaseCode is the outcome of a lease call. The script uses the same values, except for the last one.
type leaseCode int64

const (
	leaseDone    leaseCode = 0
	leaseHeld    leaseCode = 1 // of acquire: the lease with the request's key was already held
	leaseFull    leaseCode = 2
	leaseNotHeld leaseCode = 3
	leaseLost    leaseCode = 4 // the data in Redis has another epoch: nothing was decided
	leaseNoRoom  leaseCode = 5 // not from the script: this process may not hold more leases
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
	frees int64 // us from now until another lease can be granted
	last  int64 // us from now until all leases have ended; 0 if this process decided
	epoch int64 // of the data that decided; 0 if this process decided
}

// leases is the part of a Limiter that grants leases: the script, its lanes, and the leases of this process.
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

// askLease sends a call to Redis and returns the reply. If the error matches redisstore.ErrAway, the caller must let
// the rule's OnBackendError decide.
func (l *Limiter) askLease(ctx context.Context, c leaseCall) (leaseReply, error) {
	r, err := l.leases.lanes.Do(ctx, l.store.QueueDeadline(ctx), c.id.key(), c, nil)
	if err != nil {
		return leaseReply{}, storeError(err)
	}
	return r, nil
}

// sendLeases sends a batch in one pipeline, with a script call for each lease call. Before them, other calls restore the
// leases of the same buckets that this process knows and Redis lacks. If Redis has lost the data of a call, the call is
// sent again.
func (l *Limiter) sendLeases(b *redisstore.Batch, batch []leaseCall) []redisstore.Result[leaseReply] {
	results := make([]redisstore.Result[leaseReply], len(batch))
	all := make([]int, len(batch))
	for i := range all {
		all[i] = i
	}
	for _, i := range l.pipelineLeases(b, batch, l.pipelineLeases(b, batch, all, results), results) {
		results[i] = redisstore.Result[leaseReply]{Err: errStale}
	}
	return results
}

// pipelineLeases sends, in one pipeline, the calls of batch whose indices are in the list `open`. It returns the
// indices of the calls that found data of another epoch, and so were not decided.
func (l *Limiter) pipelineLeases(b *redisstore.Batch, batch []leaseCall, open []int, results []redisstore.Result[leaseReply]) (lost []int) {
	if len(open) == 0 {
		return nil
	}
	epochs := l.local.epochs
	restores := l.lackingLeases(batch, open)
	n := len(restores)
	calls := make([]redisstore.Call, 0, n+len(open)) // calls for one slot run in this order
	for _, r := range restores {
		calls = append(calls, r.call)
	}
	for _, i := range open {
		calls = append(calls, batch[i].call(l.cfg.redisNow(), epochs))
	}
	replies := b.Run(l.leases.script, calls)
	for i, r := range restores {
		if reply, _, err := readLease(replies[i]); err == nil && reply.code == leaseDone {
			l.leases.table.restored(r.key, r.all, reply.epoch)
			l.metrics.raised.Add(float64(len(r.all)))
		}
	}
	for at, i := range open {
		c, reply := &batch[i], replies[n+at]
		if errors.Is(reply.Err, redisstore.ErrMoving) { // the key of the epoch may be on the other node
			reply = b.Run(l.leases.script, []redisstore.Call{c.call(l.cfg.redisNow(), nil)})[0]
		}
		r, rebased, err := readLease(reply)
		results[i] = redisstore.Result[leaseReply]{Answer: r, Err: err}
		switch {
		case errors.Is(err, errCorrupt):
			if l.countCorrupt() {
				l.cfg.Log.Error("a stored value is not a set of leases; "+
					"it is not changed, and its rule is decided as if redis were away", "key", c.id.key())
			}
		case rebased:
			l.metrics.rebased.Inc()
		}
		if err != nil {
			continue
		}
		if r.epoch != 0 {
			epochs.set(c.id.tag(), r.epoch)
		}
		if r.code == leaseLost {
			lost = append(lost, i)
		} else if r.code == leaseDone && c.op != leaseCount {
			b.Wrote()
		}
	}
	return lost
}

// restoreCall is a script call that restores leases of one bucket.
type restoreCall struct {
	call redisstore.Call
	key  string
	all  []knownLease
}

// maxRestored is the largest number of leases that one script call restores.
const maxRestored = 500

// lackingLeases returns the calls that restore what Redis lacks of the buckets of the calls in the list `open`.
func (l *Limiter) lackingLeases(batch []leaseCall, open []int) (all []restoreCall) {
	epochs := l.local.epochs
	if !epochs.lost.Load() && l.leases.table.owing.Load() == 0 {
		return nil
	}
	asked := map[string]bool{}
	for _, i := range open {
		id := batch[i].id
		key, epoch := id.key(), epochs.of(id.tag())
		if asked[key] {
			continue
		}
		asked[key] = true
		for part := range slices.Chunk(l.leases.table.lacking(key, epoch, l.micros()), maxRestored) {
			call := redisstore.Call{Keys: []string{key, epochs.key(id.tag())}, Args: []any{
				int64(leaseRestore), l.cfg.redisNow(), int64(rule.MaxLeases), part[0].left, part[0].name, max(unknownEpoch, epoch),
			}}
			for _, lease := range part[1:] {
				call.Args = append(call.Args, lease.left, lease.name)
			}
			all = append(all, restoreCall{call, key, part})
		}
	}
	return all
}

// call returns the script call. now is the time in µs that the script uses; 0 means Redis's time. If known is nil,
// the script does not compare the epoch.
func (c *leaseCall) call(now int64, known *epochs) redisstore.Call {
	capacity, ttl := int64(0), c.ttl.Microseconds()
	if c.rule != nil {
		capacity = c.rule.Burst
	}
	out := redisstore.Call{Keys: []string{c.id.key()}, Args: []any{int64(c.op), now, capacity, ttl, c.id.name(), int64(0)}}
	if known != nil {
		tag := c.id.tag()
		out.Keys = append(out.Keys, known.key(tag))
		out.Args[len(out.Args)-1] = max(unknownEpoch, known.of(tag))
	}
	return out
}

// readLease decodes the script's reply. rebased reports whether the script has moved the bucket because the clock was
// set back. The error matches redisstore.ErrAway or redisstore.ErrScript.
func readLease(reply redisstore.Reply) (r leaseReply, rebased bool, err error) {
	const width = 8
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
		return leaseReply{now: n[0], code: leaseCode(n[2]), ends: n[3], held: n[4], frees: n[5], last: n[6], epoch: n[7]}, n[1] == 1, nil
	}
}
