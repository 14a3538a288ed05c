package verifier

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/ledger/audit"
)

// agreed makes a tenant without a balance: nothing contradicts its terms. It had three terms, and a change waits. Its
// plan has two versions.
func (b *bundle) agreed() *bundle {
	b.t.Helper()
	b.plan("idle", 100, "month", "overage_policy = 'allow', overage_cap = 7")
	b.exec("UPDATE plan_allowances SET overflow_meter = 'credits', overflow_price = 2 WHERE plan = 'idle'")
	b.exec("INSERT INTO plans (plan, version, created_at, apply) VALUES ('idle', 2, $1, 'now')", b.now())
	b.exec(`INSERT INTO plan_allowances (plan, version, meter, ordinal, amount, every, anchor)
		VALUES ('idle', 2, 'api_calls', 0, 5, 'month', 'tenant'), ('idle', 2, 'credits', 1, 5, 'month', 'tenant')`)
	b.signUp("idle", "idle")
	for _, amount := range []string{`{"api_calls": 1}`, `{"api_calls": 2}`} {
		b.termsAt("idle", b.now(), amount)
		b.advance(time.Hour)
	}
	b.waits("idle", b.now().AddDate(0, 0, 10))
	return b
}

// termsAt writes terms of a tenant from an instant on.
func (b *bundle) termsAt(tenant string, from time.Time, overrides string) {
	b.t.Helper()
	b.exec(`INSERT INTO tenant_terms (tenant_id, effective_at, plan, anchor, timezone, at_once, overrides)
		SELECT tenant_id, $2, plan, anchor, timezone, true, $3 FROM tenants WHERE tenant_id = $1`,
		tenant, from, overrides)
}

// waits writes a change of a tenant that waits until an instant.
func (b *bundle) waits(tenant string, until time.Time) {
	b.t.Helper()
	b.termsAt(tenant, until, `{"api_calls": 3}`)
	b.exec("UPDATE tenants SET pending_at = $2 WHERE tenant_id = $1", tenant, until)
}

func TestVerify_ChangedAgreement_IsReported(t *testing.T) {
	t.Parallel()
	notOnCitus(t)
	b := newBundle(t).agreed()
	b.mustVerify()
	b.uncheck()
	const (
		first   = " WHERE effective_at = (SELECT min(effective_at) FROM tenant_terms)"
		second  = " WHERE overrides @> '{\"api_calls\": 1}'"
		third   = " WHERE overrides @> '{\"api_calls\": 2}'"
		waiting = " WHERE effective_at = (SELECT pending_at FROM tenants)"
		added   = `INSERT INTO tenant_terms (tenant_id, effective_at, plan, anchor, timezone)
			SELECT tenant_id, effective_at + interval '1 second', plan, anchor, timezone FROM tenant_terms`
		versions = "plan idle: hash chain of the versions"
		hash     = "hash chain of the terms"
	)
	for _, d := range []damage{
		{"first terms", "UPDATE tenant_terms SET plan = 'free'" + first, hash},
		{"terms that have ended", "UPDATE tenant_terms SET overrides = '{\"api_calls\": 9}'" + second, hash},
		{"terms in force", "UPDATE tenant_terms SET overrides = '{\"api_calls\": 9}'" + third, hash},
		{
			"terms at another time",
			"UPDATE tenant_terms SET effective_at = effective_at - interval '1 s'" + second,
			hash,
		},
		{"terms removed", "DELETE FROM tenant_terms" + second, "number of terms"},
		{"newest terms removed", "DELETE FROM tenant_terms" + third, "number of terms"},
		{"terms inserted", added + first, "number of terms"},
		{"terms appended", added + third, "terms since"},
		{"terms that wait changed", "UPDATE tenant_terms SET prorate = true" + waiting, "terms that wait"},
		{"terms that wait removed", "DELETE FROM tenant_terms" + waiting, "terms that wait"},
		{
			"terms that wait at another time",
			"UPDATE tenant_terms SET effective_at = effective_at + interval '1 d'" + waiting,
			"terms that wait",
		},
		{
			"chain of terms",
			"UPDATE terms_chains SET chain = set_byte(chain, 20, 255 - get_byte(chain, 20)) WHERE plan = ''",
			hash,
		},
		{
			"tenant removed with its terms",
			"DELETE FROM tenants; DELETE FROM tenant_terms",
			"tenant of an existing hash chain",
		},
		{"chain without meaning", "UPDATE terms_chains SET chain = '\\x00'", hash},

		{"amount of a plan", "UPDATE plan_allowances SET amount = amount + 1 WHERE version = 1", versions},
		{"amount of the newest version", "UPDATE plan_allowances SET amount = amount + 1 WHERE version = 2", versions},
		{"price of a plan", "UPDATE plan_allowances SET overflow_price = 1 WHERE version = 1", versions},
		{"overage of a plan", "UPDATE plan_allowances SET overage_cap = NULL WHERE version = 1", versions},
		{"allowance removed", "DELETE FROM plan_allowances WHERE version = 2 AND meter = 'credits'", versions},
		{
			"allowance added", `INSERT INTO plan_allowances (plan, version, meter, ordinal, amount, every, anchor)
				VALUES ('idle', 1, 'credits', 1, 5, 'month', 'tenant')`, versions,
		},
		{"version that waits", "UPDATE plans SET apply = 'next_period' WHERE version = 2", versions},
		{"version removed", "DELETE FROM plans WHERE version = 2", "plan idle: number of versions"},
		{"plan removed", "DELETE FROM plans", "plan idle: number of versions"},
		{
			"version appended",
			"INSERT INTO plans (plan, version, created_at) VALUES ('idle', 3, now() + interval '1 year')",
			"plan idle: versions since",
		},
	} {
		b.expectNamed(d)
	}
	b.mustVerify()
}

// The version before writes no chain. As long as it may run beside this one, what it writes is no difference, and the
// next verification adds it to the chain. After that, any change is a difference.
func TestVerify_TermsOfVersionBefore_JoinTheChain(t *testing.T) {
	t.Parallel()
	notOnCitus(t)
	b := newBundle(t).agreed()
	b.exec("UPDATE chain_start SET terms_at = $1", b.now().Add(24*time.Hour))
	b.mustVerify()
	b.advance(time.Hour)
	b.exec("INSERT INTO plans (plan, version, created_at, apply) VALUES ('idle', 3, $1, 'now')", b.now())
	b.exec("DELETE FROM tenant_terms WHERE effective_at = (SELECT pending_at FROM tenants)")
	b.termsAt("idle", b.now(), `{"api_calls": 4}`)
	b.waits("idle", b.now().AddDate(0, 0, 11))
	b.signUp("other", "idle")
	b.advance(36 * time.Hour) // nobody has verified meanwhile
	b.mustVerify()
	b.uncheck()
	for _, d := range []damage{
		{
			"terms",
			"UPDATE tenant_terms SET reason = 'x' WHERE overrides @> '{\"api_calls\": 4}'",
			"hash chain of the terms",
		},
		{
			"terms of another tenant",
			"UPDATE tenant_terms SET reason = 'x' WHERE tenant_id = 'other'",
			"hash chain of the terms",
		},
		{
			"terms that wait",
			"UPDATE tenant_terms SET reason = 'x' WHERE overrides @> '{\"api_calls\": 3}'",
			"terms that wait",
		},
		{
			"terms of the day of the rollout",
			`INSERT INTO tenant_terms (tenant_id, effective_at, plan, anchor, timezone)
				SELECT tenant_id, effective_at + interval '1 second', plan, anchor, timezone FROM tenant_terms
				WHERE overrides @> '{"api_calls": 4}'`,
			"number of terms",
		},
		{"version", "UPDATE plans SET features = '{\"x\": true}' WHERE version = 3", "hash chain of the versions"},
	} {
		b.expectNamed(d)
	}
	b.mustVerify()
}

// Terms and versions are sealed with the journal: whoever rewrites them and their chains cannot rewrite the seal.
func TestCheckSeal_AgreementRewritten_IsFound(t *testing.T) {
	t.Parallel()
	notOnCitus(t)
	b := newBundle(t).agreed().nextDay()
	first := b.sealDay(time.Time{}, nil)
	require.EqualValues(t, 2, first.Heads, "a tenant and a plan: %+v", first)
	b.nextDay()
	require.Zero(t, b.sealDay(time.Time{}, nil).Heads, "nothing has changed")
	b.termsAt("idle", b.now(), `{"api_calls": 4}`)
	b.chainAnew("idle")
	b.nextDay()
	newest := b.sealDay(time.Time{}, nil)
	require.EqualValues(t, 1, newest.Heads, "the tenant's terms: %+v", newest)
	b.mustCheck(first)
	b.mustCheck(newest)
	b.uncheck()
	const sealedTerms = "terms of tenant idle: 3 terms were sealed on"
	for _, d := range []damage{
		{"terms", "UPDATE tenant_terms SET reason = 'x' WHERE overrides @> '{\"api_calls\": 1}'", sealedTerms},
		{"terms removed", "DELETE FROM tenant_terms WHERE overrides @> '{\"api_calls\": 1}'", sealedTerms},
		{"tenant's terms removed", "DELETE FROM tenant_terms", sealedTerms},
		{
			"plan",
			"UPDATE plan_allowances SET amount = amount + 1 WHERE version = 1",
			"versions of plan idle: 2 versions were",
		},
		{"plan removed", "DELETE FROM plans", "versions of plan idle: 2 versions were"},
	} {
		b.exec("DELETE FROM terms_chains")
		b.exec(d.sql)
		b.mustVerify() // whoever can write all tables can make them agree
		report := b.check(first)
		assert.Contains(t, append(report.Differences, "")[0], d.fact, "%s: %q", d.name, report.Differences)
		b.restore(d.sql)
	}
	b.exec("DELETE FROM terms_chains")
	b.mustVerify()
	b.mustCheck(newest)
}

// A seal covers what took effect until the end of its day, and refuses terms that are not those of their chain.
func TestSeal_Terms_OfTheDayAndUndamaged(t *testing.T) {
	t.Parallel()
	b := newBundle(t).nextDay().simple("acme", 10).nextDay()
	b.termsAt("acme", b.now(), `{"api_calls": 1}`)
	first := b.sealDay(time.Time{}, nil)
	require.EqualValues(t, 2, first.Heads, "terms and plan: %+v", first)
	b.nextDay()
	b.exec("UPDATE tenant_terms SET reason = 'x' WHERE overrides = '{}'")
	_, err := b.Seal(t.Context(), audit.SealOptions{Host: later})
	require.ErrorContains(t, err, "hash chain of the terms")
	b.exec("UPDATE tenant_terms SET reason = NULL")
	require.EqualValues(t, 1, b.sealDay(time.Time{}, nil).Heads, "the terms of the day after")
	b.mustCheck(first)
}
