package pg

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/quotasvc/quotasvc/internal/kit/bound"
	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/ledger"
)

func TestValidate_BadRequests_RefusedByField(t *testing.T) {
	t.Parallel()
	b := newBundle(t).simple("acme", 10)
	long := strings.Repeat("x", bound.MaxKey+1)
	bad := func(name, field string, err error) {
		t.Helper()
		assert.Equal(t, field, wantCode(t, err, errcode.InvalidArgument).Field(), name)
	}
	debit := func(change func(*ledger.Debit)) error {
		d := debitOf("acme", "k1", 1)
		change(d)
		_, err := Do(t.Context(), b.Ledger, d)
		return err
	}
	bad("no key", "Idempotency-Key", debit(func(d *ledger.Debit) { d.Key = "" }))
	bad("long key", "Idempotency-Key", debit(func(d *ledger.Debit) { d.Key = long }))
	bad("blank in key", "Idempotency-Key", debit(func(d *ledger.Debit) { d.Key = "a b" }))
	bad("the ledger's own prefix", "Idempotency-Key", debit(func(d *ledger.Debit) { d.Key = "§x" }))
	bad("tenant", "tenant", debit(func(d *ledger.Debit) { d.Tenant = "a/b" }))
	bad("subject", "subject", debit(func(d *ledger.Debit) { d.Subject = "{x}" }))
	bad("no items", "items", debit(func(d *ledger.Debit) { d.Items = nil }))
	bad("many items", "items", debit(func(d *ledger.Debit) { d.Items = make([]ledger.Item, ledger.ItemsMax+1) }))
	bad("zero", "items[0].amount", debit(func(d *ledger.Debit) { d.Items[0].Amount = 0 }))
	bad("negative", "items[0].amount", debit(func(d *ledger.Debit) { d.Items[0].Amount = -1 }))
	bad("too much", "items[0].amount", debit(func(d *ledger.Debit) { d.Items[0].Amount = ledger.MaxAmount + 1 }))
	bad("meter twice", "items[1].meter", debit(func(d *ledger.Debit) { d.Items = append(d.Items, d.Items[0]) }))
	bad("mode", "mode", debit(func(d *ledger.Debit) { d.Mode = "all" }))
	grant := func(change func(*ledger.Grant)) error {
		g := topupOf("acme", "k1", "api_calls", 1)
		change(g)
		_, err := Do(t.Context(), b.Ledger, g)
		return err
	}
	bad("source", "source", grant(func(g *ledger.Grant) { g.Source = ledger.SourceAllowance }))
	for _, own := range []string{"allowance:2026-11-01T00:00:00Z", "rollover:2026-11-01T00:00:00Z", "regrant-39a9246a4dfae105", "adjustment-31b479031bd6980d"} {
		bad("an id of the ledger's own grants", "grant_id", grant(func(g *ledger.Grant) { g.GrantID = own }))
	}
	bad("priority", "priority", grant(func(g *ledger.Grant) { g.Priority = new(ledger.PriorityMax + 1) }))
	bad("NUL", "reason", grant(func(g *ledger.Grant) { g.Reason = "a\x00b" }))
	bad("not UTF-8", "cost_basis", grant(func(g *ledger.Grant) { g.CostBasis = "\xff" }))
	bad("year 9999", "expires_at", grant(func(g *ledger.Grant) { g.ExpiresAt = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC) }))
	bad("past", "expires_at", grant(func(g *ledger.Grant) { g.ExpiresAt = time.Now().Add(-time.Hour) }))
	bad("past before effect", "expires_at", grant(func(g *ledger.Grant) {
		g.EffectiveAt, g.ExpiresAt = time.Now().Add(2*time.Hour), time.Now().Add(time.Hour)
	}))
	hold := func(ttl time.Duration) error {
		h := holdOf("acme", "k1", "h1", 1)
		h.TTL = ttl
		_, err := Do(t.Context(), b.Ledger, h)
		return err
	}
	bad("short hold", "ttl_seconds", hold(time.Millisecond))
	bad("long hold", "ttl_seconds", hold(ledger.HoldTTLMax+time.Second))
	_, err := Do(t.Context(), b.Ledger, &ledger.Refund{Tenant: "acme", Key: "k1", OperationID: "a\x00"})
	bad("NUL in operation", "operation_id", err)
	_, err = Do(t.Context(), b.Ledger, &ledger.Adjust{Tenant: "acme", Key: "k1", Meter: "api_calls", Reason: "x"})
	bad("nothing", "amount", err)
	_, err = Do(t.Context(), b.Ledger, &ledger.Adjust{Tenant: "acme", Key: "k1", Meter: "api_calls", Amount: 1})
	bad("no reason", "reason", err)
	got := b.mustBalance("acme", "api_calls")
	assert.True(t, got.Remaining == 10 && got.Seq == 1, "refused requests left something behind: %+v", got)
}

func TestBatch_RefusedMetadata_FailsAlone(t *testing.T) {
	t.Parallel()
	b := newBundle(t).simple("acme", 10)
	odd := debitOf("acme", "k2", 1)
	odd.Metadata = []byte(`{"a":"\u0000"}`)
	out := b.DebitBatch(t.Context(), []*ledger.Debit{debitOf("acme", "k1", 1), odd, debitOf("acme", "k3", 1)})
	assert.True(t, out[0].Err == nil && out[2].Err == nil, "neighbours failed: %v, %v", out[0].Err, out[2].Err)
	wantCode(t, out[1].Err, errcode.Internal)
	wantEqual(t, "used", b.mustBalance("acme", "api_calls").Used, 2)
	b.mustVerify()
}
