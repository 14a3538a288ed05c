package ledger

import (
	"encoding/hex"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// A retry may arrive after an upgrade of the service. Its fingerprint must then equal the fingerprint that the older
// version stored. So the expected values in this test never change.
func TestFingerprint_IsTheSameInEveryVersion(t *testing.T) {
	t.Parallel()
	priority := int32(7)
	at := time.Date(2026, 11, 22, 17, 30, 0, 123456000, time.UTC)
	items := []Item{{Meter: "calls", Amount: 3}, {Meter: "gb", Amount: 9007199254740991}}
	for want, op := range map[string]Operation{
		"7457a0f774a926d17f6d068586faa444": &Debit{Tenant: "acme", Key: "k", Subject: "u1", Items: items, Metadata: []byte(`{"a":1}`), Scope: "consume"},
		"d7b7d093bb4b4f67779eaa06573445e4": &Debit{Tenant: "acme", Key: "k", Items: items, Mode: ModeNormal},
		"ce2c585800592954c3455ab1231cd7df": &Debit{Tenant: "acme", Key: "k", Items: items, Mode: ModeDrain},
		"2e54fae4973d6d8d7154648b7e56d8af": &Grant{
			Tenant: "acme", Key: "k", Meter: "calls", Subject: "u1", GrantID: "g1", Amount: 5, Source: SourceTopup, Priority: &priority,
			EffectiveAt: at, ExpiresAt: at.Add(time.Hour), CostBasis: "0.1", Reason: "r",
		},
		"3b93538a28f924237195b3797416dc70": &Grant{Tenant: "acme", Key: "k", Meter: "calls", Amount: 5, Source: SourcePromo},
		"894580a1590eeac5554ef657077b5458": &Hold{
			Tenant: "acme", Key: "k", HoldID: "h1", Subject: "u1", Items: items, TTL: time.Minute, Metadata: []byte(`{}`),
		},
		"f4bd585036b9578185dbd3c6fa7038c3": &HoldChange{
			Tenant: "acme", Key: "k", HoldID: "h1", Action: ActionCapture, Items: items, Final: true, Return: ReturnRegrant,
		},
		"5ddc2278142fcf9d104e68d773964d61": &HoldChange{Tenant: "acme", Key: "k", HoldID: "h1", Action: ActionExtend, TTL: time.Minute},
		"80e49fb41d0306376701db34719e8e3c": &Refund{
			Tenant: "acme", Key: "k", OperationID: "op", Meter: "calls", Amount: 2, Return: ReturnForfeit, Reason: "r",
		},
		"78541fa7895da45491aa103d2b9e18c1": &Adjust{Tenant: "acme", Key: "k", Meter: "calls", Subject: "u1", Amount: -4, Reason: "r"},
		"ddeb24fd5710f74cb94cea47671b584a": &GrantChange{Action: VoidGrant, Tenant: "acme", Key: "k", GrantID: "g1", Meter: "calls", Reason: "r"},
		"094faeb3f3121ccf6b7001f2d4bc7c9a": &GrantChange{Action: ExtendGrant, Tenant: "acme", Key: "k", GrantID: "g1", Meter: "calls", Reason: "r", ExpiresAt: time.Unix(2e9, 0)},
	} {
		got := NewCall(op).Fingerprint
		assert.True(t, hex.EncodeToString(got[:]) == want, "%+v: fingerprint %x, want %s", op, got, want)
	}
}
