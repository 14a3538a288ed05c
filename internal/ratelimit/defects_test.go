package ratelimit

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quotasvc/quotasvc/internal/ratelimit/rule"
	"github.com/quotasvc/quotasvc/internal/testenv"
	"github.com/quotasvc/quotasvc/lua"
)

// The defects that limiters in Redis are known for, and the tests that show that this one does not have them. "Oracle" is
// TestScriptEqualsTheOracle, which runs all kinds on a real Redis; lua: is the tests beside the script.
//
//	 1  a fraction in a reply is cut off                       Oracle: remaining, retry, next and reset are exact
//	 2  a fraction is charged and a whole number reported      Oracle; TestFractionsAreNotLost
//	 3  numbers turned into text lose digits                   lua:TestLimitsStoresNoMoreThanItMust; Oracle, at times of 2026
//	 4  nanoseconds beyond 2^53                                TestEveryKindsRetryAfterIsExactToTheMicrosecond
//	 5  the client's clock decides                             TestReplicasClocksDoNotMatter
//	 6  a script reads the clock more than once                lua:TestLimitsReadsTheClockOnce
//	 7  time in whole seconds                                  TestFractionsAreNotLost; TestNoIntervalAdmitsMoreThanBurstAndRefill
//	 8  the key expires before the bucket is full              Oracle (keys expire at their time); TestExpiryOfAFullBucketChangesNothing
//	 9  a TTL of 0: nothing is stored, no limit                TestShortPeriodsAreLimitedToo
//	10  a key without an expiry                                Oracle (expiries.note); lua:TestLimitsReadsTheClockOnce
//	11  an expiry in the past                                  TestShortPeriodsAreLimitedToo; Oracle
//	12  fractions of refill are lost at each request           TestFractionsAreNotLost
//	13  half a token is given away                             TestEveryKindsRetryAfterIsExactToTheMicrosecond
//	14  a cost beyond the capacity waits for ever              TestCostBeyondTheCapacityIsNever
//	15  denied requests consume                                Oracle (DUMP); TestConcurrentClientsAreAdmittedExactlyTheCapacity
//	16  NaN, negative and infinite costs                       lua:TestLimitsRefusesBadArgumentsAndChangesNothing; TestRequestsAreChecked
//	17  a clock set back pays twice, or starves                TestEveryKindSurvivesAClockSetBack; Oracle
//	18  a changed rule refills, or is ignored                  TestChangedRuleKeepsTheDebt; TestAnotherCalendarKeepsTheCount; Oracle
//	19  keys in several slots; braces in ids                   TestOnACluster; TestBucketsOfOneTenantShareASlotAndSharedOnesHaveTheirOwn;
//	                                                           TestRequestsAreChecked
//	20  the script is missing after a restart                  TestMissingScriptIsSentAgainAndNothingIsLostOrDoubled; TestOnACluster
//	21  a lost reply is replayed and charges twice             TestLostReplyChargesOnce
//	22  commands of old servers                                TestScriptsAskForNothingOfOldServers
//	23  a nil cuts the reply off                               lua:TestLimitsAcceptsTheLargestCall; vector.decode counts
//	24  check, then set: races and many round trips            TestOneRoundTripDecidesAllRules; lua:TestLimitsReadsTheClockOnce
//	25  a failover loses charges; a demoted master is asked    TestSentinelsFailover; TestConnectionsToADemotedMasterAreDropped
//	26  an evicted key is a full bucket                        TestServersThatCannotWriteAreAway (noeviction is an outage, not a gift)

// TestReplicasClocksDoNotMatter: Redis' clock decides, whatever the processes think the time is.
func TestReplicasClocksDoNotMatter(t *testing.T) {
	t.Parallel()
	client := patientClient(t, testenv.Redis(t))
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
			if admitted != 12 {
				t.Errorf("%s: %d admitted of 12 after limiter %d", kind, admitted, i)
			}
		}
	}
}

// TestShortPeriodsAreLimitedToo: what is soon forgotten must be remembered until then.
func TestShortPeriodsAreLimitedToo(t *testing.T) {
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
					if admitted != r.Burst {
						t.Errorf("%s %s: %d admitted at once in round %d", kind, rate, admitted, round)
					}
					clock.advance(2 * r.Rate.Period)
				}
			}
		}
	})
}

// TestScriptsAskForNothingOfOldServers that newer ones ignore or refuse.
func TestScriptsAskForNothingOfOldServers(t *testing.T) {
	t.Parallel()
	for name, source := range map[string]string{"limits": lua.Limits, "leases": lua.Leases, "balances": lua.Balances} {
		for _, old := range []string{"replicate_commands", "set_repl", "redis.setresp"} {
			if strings.Contains(source, old) {
				t.Errorf("%s uses %s", name, old)
			}
		}
	}
}

// TestOneRoundTripDecidesAllRules: there is nothing to race with between reading and writing.
func TestOneRoundTripDecidesAllRules(t *testing.T) {
	t.Parallel()
	server := testenv.RedisPrivate(t)
	client := patientClient(t, server.Options())
	l := patientLimiter(t, client, settings{})
	if err := l.store.Start(context.Background()); err != nil {
		t.Fatal(err)
	}
	var charges []Charge
	for i := range MaxCharges {
		charges = append(charges, Charge{Rule: compile(t, rule.Spec{ID: fmt.Sprint("rule-", i), Kind: kinds()[i%len(kinds())].String(), Rate: "10/day"})})
	}
	mustConsume(t, l, requestOf(charges...)) // connects, and learns Redis' time
	var calls commandCount
	client.AddHook(&calls)
	for range 5 {
		if d := mustConsume(t, l, requestOf(charges...)); !d.Allowed || d.Degraded {
			t.Errorf("%+v", d)
		}
	}
	if calls.n != 5 {
		t.Errorf("5 requests of %d rules were sent as %d commands", MaxCharges, calls.n)
	}
}

// commandCount counts what is sent. The limiter's lanes send one after the other for one tenant.
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
