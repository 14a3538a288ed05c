package ratelimit

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
	"github.com/quotasvc/quotasvc/internal/ratelimit/rule"
	"github.com/quotasvc/quotasvc/internal/ratelimit/rule/oracle"
)

// lossProgram is a random program in which Redis loses its data. Requests, the processes that send them, changes of
// rules and losses are random. Each bucket has only one calendar. With several calendars, a process would not know all
// tokens. A token that does not count in the calendar of its last request may count in another calendar.
type lossProgram struct {
	processes []*Limiter
	now       *atomic.Int64 // us; also read by the watches of limiters
	lose      func(context.Context) error
}

// newLossProgram returns a program of n processes on one Redis or cluster.
func newLossProgram(t *testing.T, n int, client redis.UniversalClient, lose func(context.Context) error) *lossProgram {
	p := &lossProgram{now: new(atomic.Int64), lose: lose}
	p.now.Store(worldStart)
	for range n {
		p.processes = append(p.processes, patientLimiter(t, client, settings{
			redisNow: p.now.Load, Now: func() time.Time { return time.UnixMicro(p.now.Load()) }, forgetful: true,
		}))
	}
	return p
}

// TestLimits_LostData_EqualsTheOracle: when Redis loses its data, a process that has seen all charges restores all of
// them.
func TestLimits_LostData_EqualsTheOracle(t *testing.T) {
	_, client := parallelServer(t)
	newLossProgram(t, 1, client, func(ctx context.Context) error { return client.FlushAll(ctx).Err() }).run(t)
}

// TestLimits_LostData_TwoProcesses_EqualTheOracle: if two processes have seen a charge, it is restored once, not
// twice.
func TestLimits_LostData_TwoProcesses_EqualTheOracle(t *testing.T) {
	_, client := parallelServer(t)
	newLossProgram(t, 2, client, func(ctx context.Context) error { return client.FlushAll(ctx).Err() }).run(t)
}

// TestLimits_LostData_Cluster_EqualsTheOracle: on a cluster the data of each hash tag has its own epoch.
func TestLimits_LostData_Cluster_EqualsTheOracle(t *testing.T) {
	t.Parallel()
	client := patientCluster(t, testenv.RedisClusterPrivate(t))
	newLossProgram(t, 2, client, func(ctx context.Context) error {
		return client.ForEachMaster(ctx, func(ctx context.Context, master *redis.Client) error { return master.FlushAll(ctx).Err() })
	}).run(t)
}

func (p *lossProgram) run(t *testing.T) {
	run := 0
	rapid.Check(t, func(rt *rapid.T) {
		run++
		tenant := fmt.Sprintf("acme-%d", run)
		w, o := drawWorld(rt), oracle.New()
		w.now = max(w.now, p.now.Load()+1) // the epoch of new data is its first instant, so this instant must be new
		var given charged
		for range rapid.IntRange(1, 30).Draw(rt, "steps") {
			switch rapid.IntRange(0, 7).Draw(rt, "event") {
			case 0, 1:
				p.look(rt, w, o, tenant) // a process can restore only what it has seen
				require.NoError(rt, p.lose(t.Context()))
				o.Lose()
				w.now++                  // an epoch is an instant, so the new one must be later
				p.look(rt, w, o, tenant) // the first call on a bucket restores its level
			case 2:
				// The tokens of a restored window count as taken at the time of the restore. A change of the window's
				// length would give other results then, so only rates of buckets change.
				if i := rapid.IntRange(0, len(w.rules)-1).Draw(rt, "changed"); w.rules[i].Kind <= rule.KindLeakyBucket {
					w.rules[i] = drawRuleOf(rt, w.rules[i].ID, w.rules[i].Kind)
				}
			}
			w.now += rapid.OneOf(
				rapid.Int64Range(1, 2000), rapid.Int64Range(1, 5_000_000), rapid.Int64Range(1, 100_000_000_000),
			).Draw(rt, "us")
			what, req := w.drawRequest(rt, tenant)
			req = given.draw(rt, w, what, req)
			by := p.processes[rapid.IntRange(0, len(p.processes)-1).Draw(rt, "process")]
			d := p.compare(rt, w, o, by, what, req)
			if what == rule.Consume || what == rule.Late {
				given.add(d, req)
			}
		}
	})
}

// compare makes a process and the oracle decide the same request, and fails the test if the decisions differ.
func (p *lossProgram) compare(t *rapid.T, w *world, o *oracle.Oracle, by *Limiter, what rule.Op, req Request) Decision {
	for i := range req.Charges {
		req.Charges[i].Zone = nil
	}
	q := testenv.Must(t).Get(req.check(what))
	p.now.Store(w.now)
	o.Forget(w.now)
	d := testenv.Must(t).Get(perform(by, what, req))
	allowed, rows := o.Decide(w.now, what, oracleCharges(&q))
	if what != rule.Refund {
		sameDecision(t, q.charges, d, allowed, rows)
	}
	return d
}

// look makes each process peek at all buckets that a request of the program can have.
func (p *lossProgram) look(t *rapid.T, w *world, o *oracle.Oracle, tenant string) {
	for _, by := range p.processes {
		for _, subject := range []string{"", "alice", "bob"} {
			req := Request{Tenant: tenant}
			for _, r := range w.rules {
				c := Charge{Rule: r, Cost: 1}
				if subject != "" {
					c.Dimension = rule.Dimension(subject)
				}
				req.Charges = append(req.Charges, c)
			}
			p.compare(t, w, o, by, rule.Peek, req)
		}
	}
}
