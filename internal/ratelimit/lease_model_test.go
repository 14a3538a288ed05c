package ratelimit

import (
	"context"
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
	"github.com/quotasvc/quotasvc/internal/ratelimit/rule"
)

// leaseOracle is a second implementation of one bucket of leases. For each lease it stores the time left at the last
// write, not the instant of its end. So a clock that is set back can neither shorten a lease nor revive an ended lease.
type leaseOracle struct {
	clock int64 // us
	left  map[string]int64
}

// advance returns the bucket as of now, the time in µs by which the bucket's time is ahead of now, and whether the
// bucket was moved back to now.
func (o *leaseOracle) advance(now int64) (s leaseOracle, ahead int64, rebased bool) {
	s = leaseOracle{clock: now, left: make(map[string]int64)}
	for name, left := range o.left {
		if left -= max(0, now-o.clock); left > 0 {
			s.left[name] = left
		}
	}
	switch ahead := o.clock - now; {
	case len(s.left) == 0 || ahead <= 0:
		return s, 0, false
	case ahead <= 5_000_000:
		s.clock = o.clock
		return s, ahead, false
	default:
		return s, 0, true
	}
}

// decide decides a call as the header of lua/leases.lua describes it.
func (o *leaseOracle) decide(now int64, op leaseOp, name string, capacity, ttl int64) leaseReply {
	s, ahead, rebased := o.advance(now)
	left, held := s.left[name]
	r := leaseReply{now: now}
	write := rebased
	switch {
	case op == leaseCount && len(s.left) < int(capacity):
	case op == leaseRelease && held:
		delete(s.left, name)
		write = true
	case op == leaseRelease, op == leaseRenew && !held:
		r.code = leaseNotHeld
	case op == leaseAcquire && held:
		r.code = leaseHeld
	case op == leaseRestore:
		s.left[name], held, write = max(left, ttl), true, true
		left = ttl
	case op == leaseCount, !held && len(s.left) >= int(capacity):
		r.code = leaseFull
	default:
		s.left[name], left, held, write = ttl, ttl, true, true
	}
	if held && op != leaseRelease && op != leaseCount {
		if r.code == leaseHeld {
			left = s.left[name]
		}
		r.ends = left + ahead
	}
	r.held = int64(len(s.left))
	if op != leaseRelease && r.held >= capacity {
		r.frees = s.leastLeft(int(r.held-capacity)) + ahead
	}
	if op != leaseRelease && r.held > 0 {
		r.last = s.leastLeft(int(r.held-1)) + ahead
	}
	if write {
		*o = s
	}
	return r
}

// leastLeft returns the n'th smallest of the times left, in µs. n starts at 0.
func (o *leaseOracle) leastLeft(n int) int64 {
	for _, left := range o.left {
		shorter, same := 0, 0
		for _, other := range o.left {
			if other < left {
				shorter++
			} else if other == left {
				same++
			}
		}
		if shorter <= n && n < shorter+same {
			return left
		}
	}
	return -1
}

// drawLeaseStep returns now moved by a random step. If back is true, the clock may be set back.
func drawLeaseStep(t *rapid.T, now int64, back bool) int64 {
	switch rapid.IntRange(0, 7).Draw(t, "step") {
	case 0, 1:
		return now
	case 2, 3:
		return now + rapid.Int64Range(1, 2_000_000).Draw(t, "us")
	case 4:
		return now + rapid.Int64Range(1, 30_000_000).Draw(t, "us")
	case 5:
		return now + rapid.Int64Range(1, 3600).Draw(t, "s")*1_000_000
	default:
		if back {
			now -= rapid.SampledFrom([]int64{1, 1000, 3_000_000, 5_000_000, 5_000_001, 60_000_000, 3_600_000_000, 86_400_000_000}).Draw(t, "back")
		}
		return now
	}
}

// drawLeaseCall returns a random call about one of six leases of a bucket. The rule's capacity may differ from the
// capacity in the last call.
func drawLeaseCall(t *rapid.T, tenant string, more ...leaseOp) leaseCall {
	capacity := rapid.OneOf(rapid.Int64Range(1, 4), rapid.Just(int64(rule.MaxLeases))).Draw(t, "capacity")
	id := LeaseID{Tenant: tenant, Rule: "exports", nonce: nonceOf(rapid.StringMatching("[a-f]").Draw(t, "lease"))}
	return leaseCall{
		op: rapid.SampledFrom(append(more, leaseAcquire, leaseAcquire, leaseAcquire, leaseRenew, leaseAdopt, leaseRelease, leaseCount)).Draw(t, "op"),
		id: id, rule: &rule.Rule{ID: "exports", Metric: "exports", Kind: rule.KindConcurrency, Burst: capacity},
		ttl: time.Duration(rapid.OneOf(rapid.SampledFrom([]int64{1, 60, 3600}), rapid.Int64Range(1, 20)).Draw(t, "ttl")) * time.Second,
	}
}

// TestLeases_Script_EqualsTheOracle is the main test of the leases script. Random calls on a real Redis get exactly the
// oracle's answers. There are clock steps in both directions, changed capacities, and keys that disappear when their
// leases have ended. A call that changes no lease writes nothing. A key exists at least as long as its longest lease.
func TestLeases_Script_EqualsTheOracle(t *testing.T) {
	client := parallelClient(t)
	now := worldStart
	l := patientLimiter(t, client, settings{redisNow: func() int64 { return now }})
	run := 0
	rapid.Check(t, func(t *rapid.T) {
		run++
		now = worldStart
		tenant := fmt.Sprintf("acme-%d", run)
		o := &leaseOracle{}
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			now = drawLeaseStep(t, now, true)
			c := drawLeaseCall(t, tenant, leaseRestore)
			key := c.id.key()
			settled, _, rebased := o.advance(now)
			if len(settled.left) == 0 && rapid.Bool().Draw(t, "expired") {
				client.Del(context.Background(), key)
				*o = leaseOracle{}
			}
			before := dump(t, client, []string{key})
			got := testenv.Must(t).Get(l.askLease(context.Background(), c))
			got.epoch = 0 // the epoch is of all data, so the oracle does not have it
			want := o.decide(now, c.op, c.id.name(), c.rule.Burst, c.ttl.Microseconds())
			require.True(t, got == want, "%s: %+v, the oracle says %+v", c.op, got, want)
			writes := rebased || want.code == leaseDone && c.op != leaseCount
			if after := dump(t, client, []string{key}); !writes && after != before {
				t.Fatalf("a %s that changes nothing turned %q into %q", c.op, before, after)
			}
			keepLeases(t, client, o, key, now)
		}
	})
}

// keepLeases fails the test if the key would expire before its last lease has ended. It then removes the key's
// expiry, because Redis expires keys by its own clock and not by the test's.
func keepLeases(t *rapid.T, client redis.UniversalClient, o *leaseOracle, key string, now int64) {
	ctx := context.Background()
	ttl := testenv.Must(t).Get(client.PTTL(ctx, key).Result())
	longest := int64(0)
	for left := range maps.Values(o.left) {
		longest = max(longest, left+o.clock-now)
	}
	switch needed := time.Duration(longest) * time.Microsecond; {
	case ttl == -1, ttl == -2: // kept earlier and not written now; or there is no key
	case ttl-testGrace < needed:
		t.Fatalf("expires in %s; a lease lasts %s", ttl, needed)
	case ttl > needed+(rule.MaxLeaseTTL+2*time.Second):
		t.Fatalf("expires in %s, long after its last lease, in %s", ttl, needed)
	}
	require.NoError(t, client.Persist(ctx, key).Err())
}

func TestLeases_Local_EqualTheOracle(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		table, now := newLeaseTable(0), worldStart
		buckets := map[string]*leaseOracle{"acme": {}, "other": {}}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			now = drawLeaseStep(t, now, false)
			c := drawLeaseCall(t, rapid.SampledFrom([]string{"acme", "acme", "other"}).Draw(t, "tenant"))
			got := table.decide(&c, now, c.rule.Burst)
			want := buckets[c.id.Tenant].decide(now, c.op, c.id.name(), c.rule.Burst, c.ttl.Microseconds())
			want.last = 0 // only Redis returns it
			require.True(t, got == want, "%s: %+v, the oracle says %+v", c.op, got, want)
			held := 0
			for _, o := range buckets {
				s, _, _ := o.advance(now)
				held += len(s.left)
			}
			if by := table.byRule(now)["exports"]; by != held || table.held < held {
				t.Fatalf("the table says %d and counts %d, the oracle %d", by, table.held, held)
			}
		}
	})
}

// TestLeases_Ended_LeaveNothingBehind: when leases have ended, a process keeps no data about them.
func TestLeases_Ended_LeaveNothingBehind(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		table, now := newLeaseTable(8), worldStart
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			now = drawLeaseStep(t, now, false)
			c := drawLeaseCall(t, rapid.StringMatching("[a-z]").Draw(t, "tenant"))
			if rapid.Bool().Draw(t, "observed") {
				table.observe(&c, leaseReply{code: leaseCode(rapid.IntRange(0, 3).Draw(t, "code")), ends: c.ttl.Microseconds(), held: 3, last: c.ttl.Microseconds()}, now)
			} else {
				table.decide(&c, now, c.rule.Burst)
			}
			counted := 0
			for _, b := range table.buckets {
				counted += len(b.leases)
			}
			require.True(t, counted == table.held && counted <= 8 && len(table.buckets) <= 2*8+1,
				"%d leases in %d buckets, counted as %d; room for 8", counted, len(table.buckets), table.held)
		}
		now += 2 * rule.MaxLeaseTTL.Microseconds()
		for range 20 {
			table.sweep(now, 8)
		}
		require.True(t, len(table.buckets) == 0 && table.held == 0,
			"%d buckets and %d leases are left when all have ended", len(table.buckets), table.held)
	})
}
