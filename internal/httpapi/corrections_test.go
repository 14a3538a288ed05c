package httpapi

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/quotasvc/quotasvc/client"
	"github.com/quotasvc/quotasvc/internal/ledger"
)

// refundOf returns the body of a refund by acme. more has further fields, with a comma in front.
func refundOf(operation, more string) string {
	return fmt.Sprintf(`{"tenant":"acme","operation_id":%q%s}`, operation, more)
}

func TestRefund_InParts_UpToDebit(t *testing.T) {
	t.Parallel()
	s := newService(t).catalogue()
	d := decoded[client.DebitAnswer](s.debit("order", "acme", "calls", 6).want(200))
	refund := func(key, more string) *answer { return s.send("/v1/refunds", key, refundOf("order", more)) }
	var got client.RefundAnswer
	first := refund("r1", `,"amount":2,"reason":"wrong result"`).want(200)
	first.into(&got)
	want := client.RefundAnswer{OperationID: "r1", RefundOf: "order", RefundOfAt: d.AsOf, Tenant: "acme", AsOf: got.AsOf, Items: []client.RefundedItem{{
		Meter: "calls", Refunded: 2, Remaining: 6,
		Draws: []client.Draw{{Grant: d.Items[0].Draws[0].Grant, Source: client.SourceAllowance, Meter: "calls", Amount: 2}},
	}}}
	assert.Equal(t, want, got)
	again := refund("r1", `,"amount":2,"reason":"wrong result"`).want(200)
	assert.True(t, again.header.Get(headerReplayed) == "true" && string(again.body) == string(first.body),
		"%v %s", again.header, again.body)
	s.unmoved("too much", func() {
		p := refund("r2", `,"amount":5`).problem(422, "refund_exceeds_debit")
		assert.True(t, p.Errors[0].Field == "amount" && strings.HasPrefix(p.Detail, "4 can still be refunded"), p)
		refund("r1", `,"amount":3`).problem(422, "idempotency_key_reused")
	})
	refund("r3", "").want(200).into(&got)
	assert.True(t, got.Items[0].Refunded == 4 && got.Items[0].Remaining == 10, got)
	s.unmoved("nothing left", func() {
		refund("r4", "").problem(422, "refund_exceeds_debit")
		refund("r4", `,"amount":1`).problem(422, "refund_exceeds_debit")
	})
	b := decoded[client.Balance](s.call("GET", "/v1/tenants/acme/balances/calls", "").want(200))
	assert.True(t, b.Used == 6 && b.Refunded == 6 && b.Remaining == 10, b)
}

func TestRefund_OnlyOwnDebitsAndCaptures(t *testing.T) {
	t.Parallel()
	s := newService(t).catalogue()
	s.call("PUT", "/v1/meters/money", `{"unit":"cent","denial_replay":true}`).want(201)
	s.call("PUT", "/v1/plans/basic", `{"allowances":[{"meter":"calls","amount":10,"every":"year","anchor":"calendar"},
		{"meter":"credits","amount":0,"every":"once","anchor":"calendar"},{"meter":"money","amount":0,"every":"once","anchor":"calendar"}],"apply":"now"}`).want(200)
	s.tenant("other")
	s.eventually("the snapshot has the meter", func() bool { return s.server.catalog.Snapshot().Meters["money"] != nil })
	s.debit("forgotten-denial", "acme", "credits", 1).want(402)
	s.eventually("the denial is stored", func() bool {
		s.debit("denial", "acme", "money", 1).want(402, 403)
		return s.call("GET", "/v1/tenants/acme/operations/denial", "").status == 200
	})
	s.debit("others", "other", "calls", 1).want(200)
	s.hold("h1", 2).want(201)
	s.send("/v1/tenants/acme/grants", "grant", `{"meter":"credits","amount":5,"source":"topup"}`).want(201)
	s.unmoved("refused", func() {
		for operation, code := range map[string]string{
			"forgotten-denial": "operation_not_found", "others": "operation_not_found", "none": "operation_not_found",
			"denial": "invalid_argument", "hold-h1": "invalid_argument", "grant": "invalid_argument",
		} {
			status := 404
			if code == "invalid_argument" {
				status = 400
			}
			p := s.send("/v1/refunds", "r", refundOf(operation, "")).problem(status, code)
			assert.True(t, len(p.Errors) == 1 && p.Errors[0].Field == "operation_id", "%s: %+v", operation, p)
		}
		s.send("/v1/refunds", "r", `{"tenant":"nobody","operation_id":"others"}`).problem(404, "operation_not_found")
	})
	s.send("/v1/holds/h1/capture", "capture", `{"tenant":"acme"}`).want(200)
	got := decoded[client.RefundAnswer](s.send("/v1/refunds", "r", refundOf("capture", "")).want(200))
	assert.True(t, got.Items[0].Refunded == 2 && got.Items[0].Remaining == 10, got)
}

func TestRefund_OneOfSeveralItems_NeedsMeter(t *testing.T) {
	t.Parallel()
	s := newService(t).spendable()
	s.send("/v1/debits", "two", `{"tenant":"acme","items":[{"meter":"calls","amount":11},{"meter":"jobs","amount":7}]}`).want(200)
	refund := func(key, more string) *answer { return s.send("/v1/refunds", key, refundOf("two", more)) }
	s.unmoved("refused", func() {
		refund("r", `,"amount":1`).refused("meter")
		refund("r", `,"meter":"seats"`).refused("meter")
		refund("r", `,"amount":8,"meter":"jobs"`).problem(422, "refund_exceeds_debit")
	})
	got := decoded[client.RefundAnswer](refund("r1", `,"amount":3,"meter":"jobs"`).want(200))
	if it := got.Items[0]; it.Meter != "jobs" || len(it.Draws) != 2 || it.Draws[0] != (client.Draw{Source: client.SourceOverage, Meter: "jobs", Amount: 2}) || it.Remaining != 1 {
		t.Errorf("%+v", got) // overage is refunded first, because it was drawn last
	}
	refund("r2", "").want(200).into(&got)
	assert.True(t, len(got.Items) == 2 && got.Items[0].Refunded == 11 && got.Items[1].Refunded == 4 &&
		s.remaining("acme", "credits") == 7, got)
}

func TestRefund_EndedGrant_ForfeitOrRegrant(t *testing.T) {
	t.Parallel()
	s := newOwner(t).catalogue()
	ends := time.Now().Add(time.Hour).UTC().Format(time.RFC3339Nano)
	s.send("/v1/tenants/acme/grants", "g", `{"meter":"credits","amount":9,"source":"promo","expires_at":"`+ends+`"}`).want(201)
	s.debit("spent", "acme", "credits", 6).want(200)
	s.send("/v1/holds", "held", `{"tenant":"acme","hold_id":"held","items":[{"meter":"credits","amount":3}],"ttl_seconds":7200}`).want(201)
	s.advance("1h")
	b := s.balance("credits", "")
	assert.Empty(t, b.Grants, "the grant has not ended: %+v", b)
	got := decoded[client.RefundAnswer](s.send("/v1/refunds", "r1", refundOf("spent", `,"amount":2`)).want(200))
	it := got.Items[0]
	assert.True(t, it.Refunded == 2 && it.Forfeited == 2 && it.Remaining == 0, got)
	s.send("/v1/refunds", "r2", refundOf("spent", `,"amount":4,"on_expired":"regrant"`)).want(200).into(&got)
	it = got.Items[0]
	assert.True(t, it.Forfeited == 0 && it.Remaining == 4 && it.Draws[0].Source == client.SourceRefund, got)
	h := holdIn(s.send("/v1/holds/held/release", "rel", `{"tenant":"acme","on_expired":"regrant"}`).want(200))
	assert.True(t, h.Items[0].Remaining == 7, h)
}

func TestVoidGrant_RemovesRemainder(t *testing.T) {
	t.Parallel()
	s := newService(t).catalogue()
	s.tenant("other")
	for _, meter := range []string{"calls", "credits"} {
		s.send("/v1/tenants/acme/grants", "twin-"+meter, `{"meter":"`+meter+`","amount":5,"source":"promo","grant_id":"twin"}`).want(201)
	}
	s.send("/v1/tenants/acme/grants", "g", `{"meter":"credits","amount":20,"source":"topup","grant_id":"paid","priority":1}`).want(201)
	s.debit("spent", "acme", "credits", 6).want(200)
	void := func(tenant, grant, key, body string) *answer {
		return s.send("/v1/tenants/"+tenant+"/grants/"+grant+"/void", key, body)
	}
	s.unmoved("refused", func() {
		p := void("acme", "none", "v", `{"reason":"x"}`).problem(404, "grant_not_found")
		assert.Equal(t, "grant_id", p.Errors[0].Field, p)
		void("other", "paid", "v", `{"reason":"x"}`).problem(404, "grant_not_found")
		void("nobody", "paid", "v", `{"reason":"x"}`).problem(404, "grant_not_found")
		void("acme", "paid", "v", `{"reason":"x","meter":"calls"}`).problem(404, "grant_not_found")
		void("acme", "twin", "v", `{"reason":"x"}`).refused("meter")
		void("acme", "paid", "v", `{"reason":"`+strings.Repeat("é", 251)+`"}`).refused("reason")
		void("acme", "paid", "v", `{}`).refused("reason")
	})
	got := decoded[client.ChangeAnswer](void("acme", "paid", "v1", `{"reason":"payment failed"}`).want(200))
	want := client.ChangeAnswer{
		OperationID: "v1", Tenant: "acme", Meter: "credits", Grant: "paid", Amount: -14, Before: 19, Remaining: 5, Seq: got.Seq, AsOf: got.AsOf,
	}
	assert.Equal(t, want, got)
	assert.Positive(t, got.Seq)
	a := void("acme", "paid", "v1", `{"reason":"payment failed"}`).want(200)
	assert.EqualValues(t, "true", a.header.Get(headerReplayed), a.header)
	s.unmoved("again", func() {
		void("acme", "paid", "v2", `{"reason":"payment failed"}`).problem(409, "precondition_failed")
	})
	void("acme", "twin", "v3", `{"reason":"mistake","meter":"calls"}`).want(200)
	assert.True(t, s.remaining("acme", "calls") == 10 && s.remaining("acme", "credits") == 5,
		"%d and %d remain", s.remaining("acme", "calls"), s.remaining("acme", "credits"))
}

func TestExtendGrant_MovesTheEnd_OnceAndNothingElse(t *testing.T) {
	t.Parallel()
	s := newService(t).catalogue()
	s.tenant("other")
	s.send("/v1/tenants/acme/grants", "g", `{"meter":"credits","amount":20,"source":"topup","grant_id":"paid","priority":1,"expires_at":"2098-01-01T00:00:00Z"}`).want(201)
	s.send("/v1/tenants/acme/grants", "g2", `{"meter":"credits","amount":3,"source":"topup","grant_id":"endless"}`).want(201)
	s.debit("spent", "acme", "credits", 6).want(200)
	extend := func(tenant, grant, key, body string) *answer {
		return s.send("/v1/tenants/"+tenant+"/grants/"+grant+"/extend", key, body)
	}
	const good = `{"expires_at":"2099-02-03T04:05:06Z","reason":"paid late"}`
	s.unmoved("refused", func() {
		extend("acme", "none", "x", good).problem(404, "grant_not_found")
		extend("other", "paid", "x", good).problem(404, "grant_not_found")
		extend("acme", "endless", "x", good).problem(409, "precondition_failed")
		for body, field := range map[string]string{
			`{"reason":"x"}`: "expires_at", `{"expires_at":"2099-01-01T00:00:00Z"}`: "reason", `{"expires_at":"soon","reason":"x"}`: "expires_at", `{"expires_at":5,"reason":"x"}`: "expires_at",
			`{"expires_at":"2098-01-01T00:00:00Z","reason":"x"}`: "expires_at", `{"expires_at":"2020-01-01T00:00:00Z","reason":"x"}`: "expires_at",
			`{"expires_at":"2099-01-01T00:00:00Z","reason":"` + strings.Repeat("é", 251) + `"}`: "reason",
		} {
			extend("acme", "paid", "x", body).refused(field)
		}
		s.call("POST", "/v1/tenants/acme/grants/paid/extend", good).problem(400, "idempotency_key_missing")
	})
	got := decoded[client.GrantExtension](extend("acme", "paid", "x1", good).want(200))
	want := client.GrantExtension{
		OperationID: "x1", Tenant: "acme", Meter: "credits", Grant: "paid", Units: 14, Remaining: got.Remaining, Seq: got.Seq, AsOf: got.AsOf,
		PreviousExpiresAt: time.Date(2098, 1, 1, 0, 0, 0, 0, time.UTC), ExpiresAt: new(time.Date(2099, 2, 3, 4, 5, 6, 0, time.UTC)),
	}
	assert.Equal(t, want, got)
	assert.Positive(t, got.Seq)
	assert.Equal(t, s.remaining("acme", "credits"), got.Remaining)
	s.unmoved("again", func() {
		var again client.GrantExtension
		a := extend("acme", "paid", "x1", good).want(200)
		assert.EqualValues(t, "true", a.header.Get(headerReplayed), a.header)
		a.into(&again)
		assert.Equal(t, got, again, "the replay")
		extend("acme", "paid", "x1", `{"expires_at":"2099-03-01T00:00:00Z","reason":"paid late"}`).problem(422, "idempotency_key_reused")
	})
	var endless client.GrantExtension
	extend("acme", "paid", "x2", `{"expires_at":null,"reason":"goodwill"}`).want(200).into(&endless)
	list := decoded[client.GrantList](s.call("GET", "/v1/tenants/acme/grants?meter=credits", "").want(200))
	for _, g := range list.Items {
		if g.GrantID == "paid" && (g.ExpiresAt != nil || g.Remaining != 14 || g.Status != client.GrantStatusActive) || endless.ExpiresAt != nil {
			t.Errorf("%+v after %+v", g, endless)
		}
	}
	op := decoded[client.Operation](s.call("GET", "/v1/tenants/acme/operations/x1", "").want(200))
	assert.True(t, len(op.Entries) == 1 && op.Kind == client.EntryKind(ledger.EntryExtendGrant) &&
		op.Entries[0].Amount == 0, op)
}

func TestAdjust_ShowsBeforeAfter_HonoursIfMatch(t *testing.T) {
	t.Parallel()
	s := newService(t).catalogue()
	s.debit("k", "acme", "calls", 4).want(200)
	var b client.Balance
	look := func() (etag string) {
		a := s.call("GET", "/v1/tenants/acme/balances/calls", "").want(200)
		a.into(&b)
		etag = a.header.Get(headerETag)
		assert.True(t, etag == fmt.Sprintf(`"%d"`, b.Seq), "ETag %s of seq %d", etag, b.Seq)
		return etag
	}
	adjust := func(key, body string, extra ...string) *answer {
		return s.send("/v1/tenants/acme/adjustments", key, body, extra...)
	}
	const up = `{"meter":"calls","amount":5,"reason":"goodwill"}`
	stale := look()
	s.debit("k2", "acme", "calls", 1).want(200)
	s.unmoved("refused", func() {
		p := adjust("a1", up, headerIfMatch, stale).problem(409, "precondition_failed")
		assert.True(t, p.Errors[0].Field == headerIfMatch, p)
		for _, tag := range []string{"", "*", "1", `"`, `""`, `"x"`, `"-1"`, `W/"1"`, `"1", "2"`, `"99999999999999999"`, `"9007199254740992"`} {
			adjust("a1", up, headerIfMatch, tag).refused(headerIfMatch)
		}
		p = adjust("a1", `{"meter":"calls","amount":-6,"reason":"x"}`).problem(409, "precondition_failed")
		assert.Equal(t, "amount", p.Errors[0].Field, p)
		adjust("a1", `{"meter":"none","amount":1,"reason":"x"}`).problem(404, "not_found")
		s.send("/v1/tenants/nobody/adjustments", "a1", up).problem(404, "tenant_not_found")
		adjust("a1", `{"meter":"calls","amount":9007199254740991,"reason":"x"}`).refused("amount")
	})
	s.unmoved("dry", func() {
		var c client.ChangeAnswer
		dry := strings.TrimSuffix(up, "}") + `,"dry_run":true}`
		s.call("POST", "/v1/tenants/acme/adjustments", dry, headerIfMatch, look()).want(200).into(&c)
		assert.True(t, c.DryRun && c.Before == 5 && c.Remaining == 10 && c.OperationID == dryRunKey, c)
		s.call("POST", "/v1/tenants/acme/adjustments", dry, headerIfMatch, stale).problem(409, "precondition_failed")
	})
	c := decoded[client.ChangeAnswer](adjust("a2", up, headerIfMatch, look()).want(200))
	want := client.ChangeAnswer{OperationID: "a2", Tenant: "acme", Meter: "calls", Grant: c.Grant, Amount: 5, Before: 5, Remaining: 10, Seq: b.Seq + 1, AsOf: c.AsOf}
	assert.Equal(t, want, c)
	assert.NotEmpty(t, c.Grant)
	if a := adjust("a2", up, headerIfMatch, stale).want(200); a.header.Get(headerReplayed) != "true" { // the stored answer stays
		t.Errorf("%v", a.header)
	}
	c = client.ChangeAnswer{}
	adjust("a3", `{"meter":"calls","amount":-10,"reason":"counted twice"}`).want(200).into(&c)
	assert.True(t, c.Before == 10 && c.Remaining == 0 && c.Grant == "", c)
	look()
	assert.True(t, b.Adjusted == -5 && b.Remaining == 0, b)
}

func TestAdjust_SubjectCap(t *testing.T) {
	t.Parallel()
	s := newService(t).spendable()
	seat := func(key string, amount int) *answer {
		return s.send("/v1/debits", key, fmt.Sprintf(`{"tenant":"acme","items":[{"meter":"seats","amount":%d}],"subject":"u1"}`, amount))
	}
	seat("k1", 3).want(402)
	var c client.ChangeAnswer
	s.send("/v1/tenants/acme/adjustments", "a", `{"meter":"seats","amount":1,"subject":"u1","reason":"asked"}`).want(200).into(&c)
	assert.True(t, c.Subject == "u1" && c.Before == 2 && c.Remaining == 3, c)
	s.send("/v1/tenants/acme/grants", "g", `{"meter":"seats","amount":1,"subject":"u1","source":"promo"}`).want(201)
	seat("k2", 4).want(200)
	seat("k3", 1).want(429)
	b := decoded[client.Balance](s.call("GET", "/v1/tenants/acme/balances/seats?subject=u1", "").want(200))
	assert.True(t, b.Subject == "u1" && b.Used == 4 && b.Remaining == 0 && s.remaining("acme", "seats") == 2, b)
}
