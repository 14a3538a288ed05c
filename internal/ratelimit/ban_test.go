package ratelimit

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
	"github.com/quotasvc/quotasvc/internal/ratelimit/rule"
)

// bannedAfter returns a rule of the given kind with 2 tokens a minute. It bans a bucket for ten minutes after n
// denials within a minute.
func bannedAfter(t *testing.T, kind rule.Kind, n int64) *rule.Rule {
	t.Helper()
	return compile(t, rule.Spec{ID: kind.String(), Kind: kind.String(), Rate: "2/min", Ban: rule.BanSpec{After: n, Within: "1m", For: "10m"}})
}

// TestBan_AfterNDenials_EndsOnTime: after three denials by two instances a ban begins, and it ends on time by Redis's
// clock. Denied peeks do not count, and denials during a ban do not extend it.
func TestBan_AfterNDenials_EndsOnTime(t *testing.T) {
	client := parallelClient(t)
	for _, kind := range kinds() {
		var now atomic.Int64
		now.Store(worldStart - worldStart%60_000_000)
		here, there := patientLimiter(t, client, settings{redisNow: now.Load}), patientLimiter(t, client, settings{redisNow: now.Load})
		req := requestOf(Charge{Rule: bannedAfter(t, kind, 3)})
		for range 2 {
			mustConsume(t, here, req)
		}
		for i := range 3 {
			for range 5 {
				v := mustPeek(t, there, req).Verdicts[0]
				require.True(t, !v.Allowed && v.Banned == 0, "%s: %+v before the ban", kind, v)
			}
			now.Add(5_000_000)
			want := time.Duration(0)
			if i == 2 {
				want = 10 * time.Minute
			}
			v := mustConsumeNot(t, []*Limiter{here, there}[i%2], req)
			require.True(t, v.Banned == want && v.RetryAfter <= max(want, 2*time.Minute),
				"%s: denial %d: %+v, want a ban of %s", kind, i+1, v, want)
		}
		end := now.Load() + 600_000_000
		for now.Load() < end {
			left := rule.Micros(end - now.Load())
			for _, l := range []*Limiter{here, there} {
				v := mustConsumeNot(t, l, req)
				require.True(t, v.Banned == left && v.RetryAfter >= left && !v.Never, "%s: %+v, want %s", kind, v, left)
				v = mustPeek(t, l, req).Verdicts[0]
				require.True(t, !v.Allowed && v.Banned == left, "%s: a peek says %+v, want a ban of %s", kind, v, left)
			}
			now.Store(min(now.Load()+59_999_999, max(end-1, now.Load()+1)))
		}
		require.Zero(t, mustPass(t, there, req).Banned, "%s: when the ban is over", kind)
	}
}

// TestBan_DenialsTooFarApart_BanNobody: if the third denial comes a whole minute after the first, it begins no ban.
// If it comes a microsecond earlier, it begins a ban.
func TestBan_DenialsTooFarApart_BanNobody(t *testing.T) {
	t.Parallel()
	var now atomic.Int64
	now.Store(worldStart)
	l := patientLimiter(t, patientClient(t, testenv.Redis(t)), settings{redisNow: now.Load})
	r := compile(t, rule.Spec{ID: "slow", Rate: "1/day", Ban: rule.BanSpec{After: 3, Within: "1m", For: "10m"}})
	mustConsume(t, l, requestOf(Charge{Rule: r}))
	for range 20 {
		require.Zero(t, mustConsumeNot(t, l, requestOf(Charge{Rule: r})).Banned)
		now.Add(30_000_000)
	}
	now.Add(-1)
	banned := mustConsumeNot(t, l, requestOf(Charge{Rule: r})).Banned
	assert.Equal(t, 10*time.Minute, banned, "three denials within a us less than a minute")
}

// TestBan_ManyAtOnce_ExactlyN: three instances send requests at the same time. Exactly N-1 denials are made without a
// ban. The bucket is not charged beyond its capacity.
func TestBan_ManyAtOnce_ExactlyN(t *testing.T) {
	client := parallelClient(t)
	var all []*Limiter
	for range 3 {
		all = append(all, patientLimiter(t, client, settings{}))
	}
	for run := range 5 {
		const after = 40
		r := compile(t, rule.Spec{ID: fmt.Sprint("r", run), Rate: "1/day", Burst: 30, Ban: rule.BanSpec{After: after, Within: "1h", For: "1h"}})
		var admitted, denied, banned atomic.Int64
		testenv.Together(24, func(i int) {
			for range 10 {
				d, err := all[i%3].Consume(t.Context(), requestOf(Charge{Rule: r}))
				switch {
				case err != nil || d.Degraded:
					t.Errorf("%+v, %v", d, err)
				case d.Allowed:
					admitted.Add(1)
				case d.Verdicts[0].Banned == 0:
					denied.Add(1)
				default:
					banned.Add(1)
				}
			}
		})
		assert.True(t, admitted.Load() == 30 && denied.Load() == after-1 && banned.Load() == 240-30-after+1,
			"%d admitted, %d denied, %d banned; want 30, %d, %d", admitted.Load(), denied.Load(), banned.Load(), after-1, 240-30-after+1)
	}
}

// TestBan_Memory_OnlyWhileBanned: until a bucket is banned, each of its denials reaches Redis. While it is banned,
// the process denies from memory, until a reset.
func TestBan_Memory_OnlyWhileBanned(t *testing.T) {
	_, client := parallelServer(t)
	l := patientLimiter(t, client, settings{})
	plain := compile(t, rule.Spec{ID: "plain", Rate: "1/day"})
	r := compile(t, rule.Spec{ID: "bans", Rate: "1/day", Burst: 2, Ban: rule.BanSpec{After: 20, Within: "1h", For: "1h"}})
	req := Request{Tenant: "acme", Charges: []Charge{{Rule: plain}, {Rule: r, Cost: 2}}}
	mustConsume(t, l, req)
	for i := range 19 { // both rules deny; a remembered denial of plain must not stop the count
		d := mustConsume(t, l, req)
		require.True(t, !d.Allowed && d.Mode == ModeRedis && d.Verdicts[1].Banned == 0, "denial %d: %+v", i+1, d)
	}
	require.Equal(t, time.Hour, mustConsume(t, l, req).Verdicts[1].Banned, "the 20th denial")
	before := evalCalls(t, client)
	began := time.Now()
	one := requestOf(Charge{Rule: r, Cost: 1}) // a ban also denies smaller costs
	for range 500 {
		v := mustConsumeNot(t, l, one)
		require.True(t, v.Banned >= 59*time.Minute && v.RetryAfter >= v.Banned, "%+v", v)
	}
	sent, most := evalCalls(t, client)-before, int(time.Since(began)/denialFor)+2
	assert.True(t, sent <= most, "%d of 500 denials of a ban reached redis, at most %d should", sent, most)
	_, existed := mustReset(t, l, r, "")
	require.True(t, existed)
	mustPass(t, l, one)
}

// TestBan_OtherInstance_IsSeenAtOnce: an instance sees the ban of another instance at once, even if it has remembered
// denials and held levels.
func TestBan_OtherInstance_IsSeenAtOnce(t *testing.T) {
	client := parallelClient(t)
	here, there := patientLimiter(t, client, settings{}), patientLimiter(t, client, settings{})
	plain := compile(t, rule.Spec{ID: "plain", Rate: "1/day"})
	r := compile(t, rule.Spec{ID: "bans", Rate: "1/day", Burst: 3, Ban: rule.BanSpec{After: 1, Within: "1h", For: "1h"}})
	both := Request{Tenant: "acme", Charges: []Charge{{Rule: plain}, {Rule: r}}}
	mustConsume(t, here, both)
	d := mustConsume(t, here, both)
	require.True(t, !d.Allowed && d.Verdicts[1].Allowed, "%+v", d) // here remembers the denial by plain
	mustConsume(t, there, requestOf(Charge{Rule: r, Cost: 2}))
	assert.Equal(t, time.Hour, mustConsume(t, here, both).Verdicts[1].Banned, "its denial was answered from memory")

	held := compile(t, rule.Spec{ID: "held", Rate: "1/day", Burst: 3, Ban: rule.BanSpec{After: 1, Within: "1h", For: "1h"}})
	one, all := requestOf(Charge{Rule: held}), requestOf(Charge{Rule: held, Cost: 3})
	mustConsume(t, there, one)
	free := requestOf(Charge{Rule: compile(t, rule.Spec{ID: "free", Rate: "1/day"})})
	testenv.Eventually(t, func() bool {
		mustPeek(t, here, one)
		return mustPeek(t, here, free).Mode == ModeHeld
	}, "a peek from held levels")
	mustConsumeNot(t, there, all)
	v := mustPeek(t, here, one).Verdicts[0]
	assert.True(t, !v.Allowed && v.Banned != 0, "%+v: a ban is not seen", v)
}

// TestBan_Shadow_CountsAndDeniesNothing: the ban of a shadow rule is reported and denies nothing, in Redis and in
// this process.
func TestBan_Shadow_CountsAndDeniesNothing(t *testing.T) {
	t.Parallel()
	for where, client := range bothStores(t) {
		l := patientLimiter(t, client, settings{})
		r := compile(t, rule.Spec{ID: "shadow", Rate: "1/day", Shadow: true, Ban: rule.BanSpec{After: 3, Within: "1h", For: "1h"}})
		for i := range 6 {
			d := mustConsume(t, l, requestOf(Charge{Rule: r}))
			if v := d.Verdicts[0]; !d.Allowed || v.Allowed != (i == 0) || (v.Banned > 0) != (i >= 3) {
				t.Errorf("%s: request %d: %+v", where, i, d)
			}
		}
	}
}

// TestBan_LateAndRefunds_ReachTheBucket: charges after the fact and refunds still change a banned bucket.
func TestBan_LateAndRefunds_ReachTheBucket(t *testing.T) {
	t.Parallel()
	for where, client := range bothStores(t) {
		l := patientLimiter(t, client, settings{})
		r := compile(t, rule.Spec{ID: "r", Rate: "10/day", Debt: 5, Ban: rule.BanSpec{After: 1, Within: "1h", For: "1h"}})
		req := requestOf(Charge{Rule: r, Cost: 10})
		d := mustConsume(t, l, req)
		assert.Equal(t, time.Hour, mustConsumeNot(t, l, req).Banned, "%s: a ban with the first denial", where)
		assert.EqualValues(t, 5, mustLate(t, l, req).Verdicts[0].Charged, where)
		mustRefund(t, l, d, req)
		v := mustPeek(t, l, requestOf(Charge{Rule: r})).Verdicts[0]
		assert.True(t, !v.Allowed && v.Banned != 0 && v.Remaining == 5, "%s: %+v, want 5 left and the ban", where, v)
		// When the ban is removed from the rule, the bucket passes requests at once, although the denials of the ban
		// are still remembered.
		free := compile(t, rule.Spec{ID: "r", Rate: "10/day", Debt: 6})
		mustPass(t, l, requestOf(Charge{Rule: free}))
	}
}

// TestBan_Outage_CountsAlone: while Redis is away, the process continues the bans that began in Redis, and counts
// denials by itself.
func TestBan_Outage_CountsAlone(t *testing.T) {
	t.Parallel()
	server := testenv.RedisPrivate(t)
	l := patientLimiter(t, patientClient(t, server.Options()), settings{})
	old := compile(t, rule.Spec{ID: "old", Rate: "1/day", Burst: 5, Ban: rule.BanSpec{After: 1, Within: "1h", For: "1h"}})
	fresh := compile(t, rule.Spec{ID: "fresh", Rate: "1/day", Burst: 5, Ban: rule.BanSpec{After: 3, Within: "1h", For: "1h"}})
	six := func(r *rule.Rule, cost int64) Request { return requestOf(Charge{Rule: r, Cost: cost}) }
	mustConsume(t, l, six(old, 4))
	mustConsumeNot(t, l, six(old, 4))
	mustConsume(t, l, six(fresh, 4))
	server.Kill()
	testenv.Eventually(t, func() bool {
		d, err := l.Peek(t.Context(), six(fresh, 1))
		return err == nil && d.Degraded
	}, "an outage")
	testenv.Eventually(t, func() bool {
		d, err := l.Consume(t.Context(), six(old, 1))
		require.True(t, err == nil && !d.Allowed && d.Verdicts[0].Banned >= 59*time.Minute, "%+v, %v", d, err)
		return d.Degraded
	}, "the ban, from the process")
	for i := range 5 {
		v := mustConsumeNot(t, l, six(fresh, 4))
		assert.True(t, (v.Banned > 0) == (i >= 2) && v.Mode == ModeLocal, "denial %d: %+v", i+1, v)
	}
	v := mustConsumeNot(t, l, six(fresh, 1))
	assert.True(t, v.Banned >= 59*time.Minute && v.Remaining == 1, "%+v, want a ban that the process counted", v)
}

// TestLocalBans_AreBounded: if very many keys are denied once, the memory for bans is bounded. Counts of denials are
// dropped before bans.
func TestLocalBans_AreBounded(t *testing.T) {
	t.Parallel()
	l := patientLimiter(t, nil, settings{})
	r := compile(t, rule.Spec{ID: "r", Rate: "1/day", Ban: rule.BanSpec{After: 2, Within: "1h", For: "1h"}})
	of := func(i int) Request { return Request{Tenant: fmt.Sprint("t", i), Charges: []Charge{{Rule: r}}} }
	for range 3 {
		mustConsume(t, l, of(0))
	}
	for i := 1; i < 3*maxLocalBans*localStripes; i++ {
		mustConsume(t, l, of(i))
		mustConsume(t, l, of(i))
	}
	all := 0
	for i := range l.local.stripes {
		all += len(l.local.stripes[i].bans)
	}
	assert.True(t, all <= maxLocalBans*localStripes, "%d bans", all)
	assert.NotZero(t, mustPeek(t, l, of(0)).Verdicts[0].Banned, "the only ban is forgotten")
}
