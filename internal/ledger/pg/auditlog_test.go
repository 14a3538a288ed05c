package pg

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/lab/testenv"
	"github.com/quotasvc/quotasvc/internal/ledger"
	"github.com/quotasvc/quotasvc/internal/outbox/auditlog"
)

// as returns the test's context with an actor whose API key has the given id.
func (b *bundle) as(key string, admin bool) context.Context {
	return auditlog.With(b.t.Context(), &auditlog.Actor{KeyID: key, Name: "the " + key, RequestID: "r1", IP: "192.0.2.1", Admin: admin})
}

// actors lists the operations of a tenant's entries, each with its actor. "own" is an operation of the ledger itself.
func (b *bundle) actors(tenant string) []string {
	b.t.Helper()
	return list[string](b, `SELECT DISTINCT CASE WHEN operation_id LIKE '§%' THEN 'own' ELSE operation_id END || ' ' || coalesce(actor, 'NULL')
		FROM entries WHERE tenant_id = $1 ORDER BY 1`, tenant)
}

// lines returns the lines of the audit log in order. Each has the action, the actor, the changed object, its values
// before and after, and the reason.
func (b *bundle) lines() []string {
	b.t.Helper()
	return list[string](b, `SELECT concat_ws(' ', action, actor_key, object_kind || ':' || tenant_id || '/' || object_id, coalesce(before::text, '-'), after::text, reason)
		FROM audit ORDER BY audit_id`)
}

func TestDo_Actor_InItsEntriesAlone(t *testing.T) {
	t.Parallel()
	b := newBundle(t).meter("api_calls")
	at := time.Now().Add(-150 * time.Minute).UTC()
	b.plan("hourly", 1, at.Add(-time.Hour), "api_calls 100 hour tenant")
	b.tenant("acme", "hourly", at, at, "UTC")
	do(b.as("key_1", false), b, debitOf("acme", "d1", 10))
	b.rewind("acme", time.Hour)
	do(b.as("key_2", true), b, debitOf("acme", "d2", 20)) // also closes a period
	do(t.Context(), b, debitOf("acme", "d3", 1))
	assert.True(t, do(b.as("key_3", false), b, debitOf("acme", "d1", 10)).Replayed, "d1 was made twice")
	denied := debitOf("acme", "d4", 1000)
	denied.Items[0].StoreDenial = true
	_, err := Do(b.as("key_1", false), b.Ledger, denied)
	wantCode(t, err, errcode.CreditsExhausted)
	for _, out := range b.DebitBatch(b.as("key_1", false), []*ledger.Debit{debitOf("acme", "d5", 1), debitOf("acme", "d6", 1)}) {
		require.True(t, out.Err == nil, out.Err)
	}
	two := debitOf("acme", "d7", 1)
	two.Metadata = []byte(`{"route":"/x"}`)
	do(b.as("key_1", false), b, two)
	wantEqual(t, "actors", b.actors("acme"), []string{"d1 key_1", "d2 key_2", "d3 NULL", "d4 key_1", "d5 key_1", "d6 key_1", "d7 key_1", "own NULL"})
	wantEqual(t, "audit log", b.lines(), []string{}) // debits are not administration
	b.mustVerify()
}

func TestDo_Administrator_OneLineInTheAuditLog(t *testing.T) {
	t.Parallel()
	b := newBundle(t).simple("acme", 100)
	later := time.Now().Add(24 * time.Hour).UTC().Truncate(time.Second)
	admin, user := b.as("key_a", true), b.as("key_u", false)
	do(user, b, debitOf("acme", "d1", 30))
	grant := topupOf("acme", "g1", "credits", 50)
	grant.GrantID, grant.Reason, grant.CostBasis, grant.EffectiveAt, grant.ExpiresAt = "order-17", "order 17", "0.01", later, later.Add(time.Hour)
	do(admin, b, grant)
	for i, ctx := range []context.Context{admin, user} {
		do(ctx, b, topupOf("acme", fmt.Sprint("g-", i), "credits", 5))
		do(ctx, b, &ledger.Adjust{Tenant: "acme", Key: fmt.Sprint("up-", i), Meter: "api_calls", Amount: 6, Reason: "goodwill"})
		do(ctx, b, &ledger.Adjust{Tenant: "acme", Key: fmt.Sprint("down-", i), Meter: "api_calls", Amount: -4, Reason: "by mistake"})
		do(ctx, b, &ledger.Refund{Tenant: "acme", Key: fmt.Sprint("r-", i), OperationID: "d1", Amount: 7, Reason: "complaint"})
	}
	longer := &ledger.GrantChange{Action: ledger.ExtendGrant, Tenant: "acme", Key: "x1", GrantID: "order-17", ExpiresAt: later.Add(2 * time.Hour), Reason: "paid late"}
	do(admin, b, longer)
	do(admin, b, longer) // a replay
	void := &ledger.GrantChange{Action: ledger.VoidGrant, Tenant: "acme", Key: "v1", GrantID: "order-17", Reason: "not paid"}
	do(admin, b, void)
	do(admin, b, void) // a replay
	_, err := Do(admin, b.Ledger, &ledger.GrantChange{Action: ledger.VoidGrant, Tenant: "acme", Key: "v2", GrantID: "order-17", Reason: "again"})
	wantCode(t, err, errcode.Conflict)
	do(admin, b, topupOf("acme", "dry", "credits", 5), DryRun(true))
	do(admin, b, debitOf("acme", "d2", 1))
	id := list[string](b, `SELECT grant_id FROM grants WHERE operation_id = 'g-0'`)[0]
	b.exec(`UPDATE audit SET after = after || '{"effective_at": "now"}' WHERE object_id = $1`, id)
	wantEqual(t, "audit log", b.lines(), []string{
		`grant.create key_a grant:acme/order-17 - {"meter": "credits", "amount": 50, "source": "topup", "status": "pending", "grant_id": "order-17", "priority": 100, "remaining": 0, "cost_basis": "0.01", ` +
			`"expires_at": "` + later.Add(time.Hour).Format(time.RFC3339) + `", "effective_at": "` + later.Format(time.RFC3339) + `"} order 17`,
		`grant.create key_a grant:acme/` + id + ` - {"meter": "credits", "amount": 5, "source": "topup", "status": "active", "grant_id": "` + id + `", "priority": 100, "remaining": 5, "expires_at": null, "effective_at": "now"} `,
		`adjustment.create key_a adjustment:acme/up-0 {"meter": "api_calls", "remaining": 70} {"meter": "api_calls", "amount": 6, "remaining": 76} goodwill`,
		`adjustment.create key_a adjustment:acme/down-0 {"meter": "api_calls", "remaining": 76} {"meter": "api_calls", "amount": -4, "remaining": 72} by mistake`,
		`refund.create key_a refund:acme/r-0 - {"items": [{"meter": "api_calls", "refunded": 7}], "operation_id": "d1"} complaint`,
		`grant.extend key_a grant:acme/order-17 {"meter": "credits", "remaining": 50, "expires_at": "` + later.Add(time.Hour).Format(time.RFC3339) + `"} ` +
			`{"meter": "credits", "remaining": 50, "expires_at": "` + later.Add(2*time.Hour).Format(time.RFC3339) + `"} paid late`,
		`grant.void key_a grant:acme/order-17 {"meter": "credits", "status": "pending", "remaining": 0} {"meter": "credits", "status": "voided", "remaining": 0} not paid`,
	})
	wantEqual(t, "who", list[string](b, "SELECT DISTINCT concat_ws(' ', actor_name, request_id, ip) FROM audit"), []string{"the key_a r1 192.0.2.1"})
	b.mustVerify()
}

// The answer to COMMIT is lost, and the batch runs again. The second run finds that the operation and its line in the
// audit log are stored, and adds no second line.
func TestDo_AnswerToCommitLost_OneLine(t *testing.T) {
	t.Parallel()
	b := newBundle(t).simple("acme", 100)
	p, through := startProxy(t, b.url)
	l := openLedger(t, through, throughCoordinator)
	p.every.Store(2)
	for wave := range 4 { // the debits of a wave may be one batch
		testenv.Together(5, func(i int) {
			g := topupOf("acme", fmt.Sprint("g", 5*wave+i), "credits", 1)
			assert.NoError(t, errOf(Do(b.as("key_a", true), l, g)))
		})
	}
	assert.NotZero(t, p.lost.Load(), "no answer was lost: the test proves nothing")
	wantEqual(t, "lines and grants", list[string](b, "SELECT count(*) || ' ' || count(DISTINCT object_id) || ' ' || (SELECT count(*) FROM grants WHERE meter = 'credits') FROM audit"), []string{"20 20 20"})
	b.mustVerify()
}

// PostgreSQL refuses one operation, because a text of its audit line cannot be stored. The other operations of the
// batch succeed, each with its line.
func TestDo_LineRefused_NoChangeAndNeighboursServed(t *testing.T) {
	t.Parallel()
	b := newBundle(t, func(c *Config) { c.Lanes = 1 })
	b.simple("acme", 100)
	do(t.Context(), b, debitOf("acme", "d0", 1))
	unlock := b.lockRow("acme") // so that the operations are in one batch
	bad := auditlog.With(t.Context(), &auditlog.Actor{KeyID: "key_b", Name: "a\x00b", Admin: true})
	var wg sync.WaitGroup
	for i := range 6 {
		wg.Go(func() {
			ctx := b.as("key_a", true)
			if i == 3 {
				ctx = bad
			}
			_, err := Do(ctx, b.Ledger, topupOf("acme", fmt.Sprint("g", i), "api_calls", 1))
			refused := errcode.Of(err) == errcode.Internal
			assert.True(t, refused == (i == 3) && (err == nil || refused), "g%d: %v", i, err)
		})
	}
	testenv.Eventually(t, func() bool { return b.parkedCalls() == 6 }, "all are parked")
	unlock()
	wg.Wait()
	wantEqual(t, "grants", list[string](b, "SELECT operation_id FROM grants WHERE source = 'topup' ORDER BY 1"), []string{"g0", "g1", "g2", "g4", "g5"})
	wantEqual(t, "lines", list[string](b, "SELECT actor_key || ' ' || count(*) FROM audit GROUP BY actor_key"), []string{"key_a 5"})
	b.mustVerify()
}

func TestStartRoll_Administrator_OneLine(t *testing.T) {
	t.Parallel()
	b := newBundle(t).simple("acme", 100)
	for _, ctx := range []context.Context{b.as("key_a", true), b.as("key_u", false), t.Context()} {
		require.NoError(t, errOf(b.StartRoll(ctx, nil)))
	}
	wantEqual(t, "lines", list[string](b, "SELECT a.action || ' ' || a.actor_key || ' ' || a.object_kind || ' ' || (r.as_of = (a.after ->> 'as_of')::timestamptz) FROM audit a JOIN rolls r ON r.roll_id = a.object_id"),
		[]string{"roll.start key_a roll true"})
}
