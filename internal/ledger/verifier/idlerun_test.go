package verifier

import (
	"testing"
	"time"
)

// idleRuns creates rows of periods that represent several idle periods. One balance owed units. In the second
// balance, units rolled over. The third balance got the minimum, because nothing rolled over.
func (b *bundle) idleRuns() *bundle {
	b.t.Helper()
	b.plan("owing", 10, "hour", "overage_policy = 'allow', overage_at_period_end = 'preserve'")
	b.plan("rolling", 100, "hour", "rollover_min = 20, rollover_max = 150")
	for tenant, plan := range map[string]string{"debtor": "owing", "saver": "rolling", "spender": "rolling"} {
		b.signUp(tenant, plan)
	}
	mustDo(b, debitOf("debtor", "d1", 75))
	mustDo(b, debitOf("saver", "d1", 55))
	mustDo(b, debitOf("spender", "d1", 100))
	b.advance(4 * time.Hour)
	for _, tenant := range []string{"debtor", "saver", "spender"} {
		mustDo(b, debitOf(tenant, "d2", 1))
	}
	return b
}

// The values at the start of a run of idle periods must follow from the journal, because the periods of the run are
// derived from these values.
func TestVerify_ChangedIdleRun_IsReported(t *testing.T) {
	t.Parallel()
	b := newBundle(t).idleRuns()
	b.mustVerify()
	b.uncheck()
	run := func(set, tenant string) string {
		return "UPDATE periods SET " + set + " WHERE idle > 0 AND tenant_id = '" + tenant + "'"
	}
	for _, d := range []damage{
		{"owing of a run", run("owing = owing + 1", "debtor"), "owing at the start of the idle periods"},
		{"owing of a run gone", run("owing = 0", "debtor"), "owing at the start of the idle periods"},
		{"owing of a run invented", run("owing = 1", "saver"), "owing at the start of the idle periods"},
		{"rollover into a run", run("rollover = rollover + 1", "saver"), "rollover into the idle periods"},
		{"rollover into a run invented", run("rollover = 1", "debtor"), "rollover into the idle periods"},
		{"rolled over into a run", run("rolled_over = rolled_over + 1", "saver"), "rolled over into the idle periods"},
		{"minimum called a rollover", run("rolled_over = 20", "spender"), "rolled over into the idle periods"},
		{"minimum gone", run("rollover = 0", "spender"), "rollover into the idle periods"},
		{"number of periods of a run", run("idle = idle + 1", "saver"), "idle periods"},
		{"terms of a run", run("terms_at = terms_at - interval '1 day'", "saver"), "idle periods"},
		{"plan of a run with other amounts", "UPDATE plan_allowances SET rollover_max = 140 WHERE plan = 'rolling'", "idle periods"},
		{"expiry of a rollover", "UPDATE grants SET expires_at = expires_at + interval '1 day' WHERE source = 'rollover' AND tenant_id = 'saver'", "expiry of grant rollover"},
		{"rollover in an ordinary period", "UPDATE periods SET rollover = 5 WHERE idle = 0 AND tenant_id = 'saver'", "idle"},
		{"a run called an ordinary period", run("idle = 0", "saver"), "idle"},
	} {
		b.expectNamed(d)
	}
	b.mustVerify()
}
