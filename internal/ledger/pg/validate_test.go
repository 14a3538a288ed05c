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

// wantBad runs an operation, which must be refused as invalid because of the field.
func wantBad[R any](b *bundle, name, field string, op ledger.Request[R]) {
	b.t.Helper()
	assert.Equal(b.t, field, wantRefusal(b, errcode.InvalidArgument, op).Field(), name)
}

func TestValidate_BadRequests_RefusedByField(t *testing.T) {
	t.Parallel()
	b := newBundle(t).simple("acme", 10)
	long := strings.Repeat("x", bound.MaxKey+1)
	debit := func(change func(*ledger.Debit)) *ledger.Debit {
		d := debitOf("acme", "k1", 1)
		change(d)
		return d
	}
	wantBad(b, "no key", "Idempotency-Key", debit(func(d *ledger.Debit) { d.Key = "" }))
	wantBad(b, "long key", "Idempotency-Key", debit(func(d *ledger.Debit) { d.Key = long }))
	wantBad(b, "blank in key", "Idempotency-Key", debit(func(d *ledger.Debit) { d.Key = "a b" }))
	wantBad(b, "the ledger's own prefix", "Idempotency-Key", debit(func(d *ledger.Debit) { d.Key = "§x" }))
	wantBad(b, "tenant", "tenant", debit(func(d *ledger.Debit) { d.Tenant = "a%b" }))
	wantBad(b, "subject", "subject", debit(func(d *ledger.Debit) { d.Subject = "<x>" }))
	wantBad(b, "no items", "items", debit(func(d *ledger.Debit) { d.Items = nil }))
	wantBad(b, "many items", "items", debit(func(d *ledger.Debit) { d.Items = make([]ledger.Item, ledger.ItemsMax+1) }))
	wantBad(b, "zero", "items[0].amount", debit(func(d *ledger.Debit) { d.Items[0].Amount = 0 }))
	wantBad(b, "negative", "items[0].amount", debit(func(d *ledger.Debit) { d.Items[0].Amount = -1 }))
	wantBad(b, "too much", "items[0].amount", debit(func(d *ledger.Debit) { d.Items[0].Amount = ledger.MaxAmount + 1 }))
	wantBad(b, "meter twice", "items[1].meter", debit(func(d *ledger.Debit) { d.Items = append(d.Items, d.Items[0]) }))
	wantBad(b, "mode", "mode", debit(func(d *ledger.Debit) { d.Mode = "all" }))
	grant := func(change func(*ledger.Grant)) *ledger.Grant {
		g := topupOf("acme", "k1", "api_calls", 1)
		change(g)
		return g
	}
	wantBad(b, "source", "source", grant(func(g *ledger.Grant) { g.Source = ledger.SourceAllowance }))
	for _, own := range []string{"allowance:2026-11-01T00:00:00Z", "rollover:2026-11-01T00:00:00Z", "regrant-39a9246a4dfae105", "adjustment-31b479031bd6980d"} {
		wantBad(b, "an id of the ledger's own grants", "grant_id", grant(func(g *ledger.Grant) { g.GrantID = own }))
	}
	wantBad(b, "priority", "priority", grant(func(g *ledger.Grant) { g.Priority = new(ledger.PriorityMax + 1) }))
	wantBad(b, "NUL", "reason", grant(func(g *ledger.Grant) { g.Reason = "a\x00b" }))
	wantBad(b, "not UTF-8", "cost_basis", grant(func(g *ledger.Grant) { g.CostBasis = "\xff" }))
	wantBad(b, "year 9999", "expires_at", grant(func(g *ledger.Grant) { g.ExpiresAt = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC) }))
	wantBad(b, "past", "expires_at", grant(func(g *ledger.Grant) { g.ExpiresAt = time.Now().Add(-time.Hour) }))
	wantBad(b, "past before effect", "expires_at", grant(func(g *ledger.Grant) {
		g.EffectiveAt, g.ExpiresAt = time.Now().Add(2*time.Hour), time.Now().Add(time.Hour)
	}))
	hold := func(ttl time.Duration) *ledger.Hold {
		h := holdOf("acme", "k1", "h1", 1)
		h.TTL = ttl
		return h
	}
	wantBad(b, "short hold", "ttl_seconds", hold(time.Millisecond))
	wantBad(b, "long hold", "ttl_seconds", hold(ledger.HoldTTLMax+time.Second))
	wantBad(b, "NUL in operation", "operation_id", &ledger.Refund{Tenant: "acme", Key: "k1", OperationID: "a\x00"})
	wantBad(b, "nothing", "amount", &ledger.Adjust{Tenant: "acme", Key: "k1", Meter: "api_calls", Reason: "x"})
	wantBad(b, "no reason", "reason", &ledger.Adjust{Tenant: "acme", Key: "k1", Meter: "api_calls", Amount: 1})
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
