package ratelimit

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/ratelimit/rule"
	"github.com/quotasvc/quotasvc/lua"
)

// This is a list of known defects of limiters in Redis. After each defect it names the tests which show that this
// limiter does not have the defect. "Oracle" is TestLimits_Script_EqualsTheOracle, which runs all kinds on a real
// Redis. "lua:" marks a test in the folder lua.
//
//	 1  a fraction in a reply is cut off                       Oracle: remaining, retry, next and reset are exact
//	 2  a fraction is charged and a whole number reported      Oracle; TestBucket_FractionsAreNotLost
//	 3  numbers turned into text lose digits                   lua:TestLimits_StoresTheLeast; Oracle, at times of 2026
//	 4  nanoseconds beyond 2^53                                TestKinds_RetryAfter_IsExactToTheMicrosecond
//	 5  the client's clock decides                             TestClock_OfReplicas_DoesNotMatter
//	 6  a script reads the clock more than once                lua:TestLimits_ReadsTheClockOnce
//	 7  time in whole seconds                                  TestBucket_FractionsAreNotLost;
//	                                                           TestConsume_AnyInterval_AtMostBurstAndRefill
//	 8  the key expires before the bucket is full              Oracle (keys expire at their time);
//	                                                           TestBucket_FullAndExpired_ChangesNothing
//	 9  a TTL of 0: nothing is stored, no limit                TestBucket_ShortPeriods_AreLimited
//	10  a key without an expiry                                Oracle (expiries.note);
//	                                                           lua:TestLimits_ReadsTheClockOnce
//	11  an expiry in the past                                  TestBucket_ShortPeriods_AreLimited; Oracle
//	12  fractions of refill are lost at each request           TestBucket_FractionsAreNotLost
//	13  half a token is given away                             TestKinds_RetryAfter_IsExactToTheMicrosecond
//	14  a cost beyond the capacity waits for ever              TestConsume_CostBeyondCapacity_IsNever
//	15  denied requests consume                                Oracle (DUMP);
//	                                                           TestConsume_Concurrent_AdmitsExactlyTheCapacity
//	16  NaN, negative and infinite costs                       lua:TestLimits_BadArguments_ChangeNothing;
//	                                                           TestRequest_Check
//	17  a clock set back pays twice, or starves                TestKinds_ClockSetBack_StayCorrect; Oracle
//	18  a changed rule refills, or is ignored                  TestRule_Changed_KeepsTheDebt;
//	                                                           TestFixedWindow_AnotherCalendar_KeepsTheCount; Oracle
//	19  keys in several slots; braces in ids                   TestCluster_SlotsMove_NothingLost;
//	                                                           TestBucketKey_TenantsShareASlotSharedRulesDoNot;
//	                                                           TestRequest_Check
//	20  the script is missing after a restart                  TestConsume_MissingScript_NothingLostOrDoubled;
//	                                                           TestCluster_SlotsMove_NothingLost
//	21  a lost reply is replayed and charges twice             TestConsume_LostReply_ChargesOnce
//	22  commands of old servers                                TestScripts_UseNoNewCommands
//	23  a nil cuts the reply off                               lua:TestLimits_AcceptsTheLargestCall;
//	                                                           vector.read counts the integers
//	24  check, then set: races and many round trips            TestConsume_AllRules_OneRoundTrip;
//	                                                           lua:TestLimits_ReadsTheClockOnce
//	25  a failover loses charges; a demoted master is asked    TestFailover_Sentinel;
//	                                                           TestFailover_DemotedMaster_ConnectionsDropped
//	26  an evicted key is a full bucket                        TestOutage_ServerCannotWrite_IsAway (with noeviction
//	                                                           a full server is an outage)

// TestClock_OfReplicas_DoesNotMatter: Redis's clock decides, even if the clocks of the processes are wrong.
func TestClock_OfReplicas_DoesNotMatter(t *testing.T) {
	client := parallelClient(t)
	for _, kind := range kinds() {
		r := compile(t, rule.Spec{Kind: kind.String(), Rate: "12/30d"})
		req := requestOf(Charge{Rule: r})
		admitted := 0
		for i, skew := range []time.Duration{0, -time.Hour, 400 * 24 * time.Hour, -400 * 24 * time.Hour} {
			l := patientLimiter(t, client, settings{Now: func() time.Time { return time.Now().Add(skew) }})
			for range 12 {
				if d := mustConsume(t, l, req); d.Degraded {
					t.Errorf("%s: %+v", kind, d)
				} else if d.Allowed {
					admitted++
				}
			}
			assert.Equal(t, 12, admitted, "%s: %d admitted of 12 after limiter %d", kind, admitted, i)
		}
	}
}

// TestBucket_ShortPeriods_AreLimited: rules with periods of milliseconds are enforced, although their keys have very
// short TTLs.
func TestBucket_ShortPeriods_AreLimited(t *testing.T) {
	onTestTime(t, func(t *testing.T, l *Limiter, clock *testClock) {
		for _, kind := range kinds() {
			for _, rate := range []string{"1/ms", "5/ms", "100/7ms", "1000/999ms"} {
				r := compile(t, rule.Spec{ID: fmt.Sprintf("%s-%s", kind, strings.ReplaceAll(rate, "/", "-")), Kind: kind.String(), Rate: rate})
				req := requestOf(Charge{Rule: r})
				for round := range 3 {
					admitted := int64(0)
					for range r.Burst + 20 {
						if mustConsume(t, l, req).Allowed {
							admitted++
						}
					}
					assert.True(t, admitted == r.Burst,
						"%s %s: %d admitted at once in round %d", kind, rate, admitted, round)
					clock.advance(2 * r.Rate.Period)
				}
			}
		}
	})
}

// TestScripts_UseNoNewCommands: the scripts use no function of Redis that newer servers ignore or refuse.
func TestScripts_UseNoNewCommands(t *testing.T) {
	t.Parallel()
	for name, source := range map[string]string{"limits": lua.Limits, "leases": lua.Leases, "balances": lua.Balances} {
		for _, old := range []string{"replicate_commands", "set_repl", "redis.setresp"} {
			assert.NotContains(t, source, old, "%s uses %s", name, old)
		}
	}
}

// TestConsume_AllRules_OneRoundTrip: a request is one command. So no other request can change its buckets between the
// read and the write.
func TestConsume_AllRules_OneRoundTrip(t *testing.T) {
	_, client := parallelServer(t)
	l := patientLimiter(t, client, settings{})
	require.NoError(t, l.store.Start(context.Background()))
	var charges []Charge
	for i := range MaxCharges {
		charges = append(charges, Charge{Rule: compile(t, rule.Spec{ID: fmt.Sprint("rule-", i), Kind: kinds()[i%len(kinds())].String(), Rate: "10/day"})})
	}
	mustConsume(t, l, requestOf(charges...)) // connects, and reads Redis's time for the first time
	var calls commandCount
	client.AddHook(&calls)
	for range 5 {
		d := mustConsume(t, l, requestOf(charges...))
		assert.True(t, d.Allowed && !d.Degraded, d)
	}
	assert.True(t, calls.n == 5, "5 requests of %d rules were sent as %d commands", MaxCharges, calls.n)
}

// commandCount counts the commands that are sent. It needs no lock, because the commands of one tenant are sent one
// after another.
type commandCount struct{ n int }

func (c *commandCount) DialHook(next redis.DialHook) redis.DialHook { return next }

func (c *commandCount) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		c.n++
		return next(ctx, cmd)
	}
}

func (c *commandCount) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		c.n += len(cmds)
		return next(ctx, cmds)
	}
}
