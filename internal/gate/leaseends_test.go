package gate

import (
	"encoding/base64"
	"errors"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/quotasvc/quotasvc/internal/catalog"
	"github.com/quotasvc/quotasvc/internal/catalog/block"
	"github.com/quotasvc/quotasvc/internal/catalog/override"
	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/lab/testenv"
)

// oldID returns an unsigned id of a lease in the format of the previous version.
func oldID(flags byte, tenant, rule, nonce string) string {
	b := append([]byte{0x10 | flags, byte(len(tenant))}, tenant...)
	b = append(append(b, byte(len(rule))), rule...)
	return base64.RawURLEncoding.EncodeToString(append(append(b, 0), nonce...))
}

// While two versions run, this version renews and releases the leases of both versions. A tenant that is suspended or
// does not exist cannot hold a lease by its id.
func TestLease_UnsignedID_TakenUntilTheEnd(t *testing.T) {
	t.Parallel()
	url, options := testenv.Postgres(t), testenv.Redis(t)
	client := patientClient(options)
	in := newInstance(t, url, client, func(c *Config) { c.UnsignedUntil = time.Now().Add(time.Hour) })
	in.catalogue(concurrencyLimit("exports", 2))
	in.putTenant(catalog.Tenant{ID: "late", Plan: "basic", Status: catalog.StatusSuspended})
	ctx, nonce := t.Context(), "0123456789abcdef"

	old := oldID(0x02, "acme", "exports", nonce) // flag: taken without Redis. The test can create only such ids
	id, err := in.ParseLease(old)
	in.expectCode("", "an old id", err)
	renewed, err := in.Renew(ctx, id, 0)
	in.expectCode("", "renew it", err)
	assert.True(t, renewed.ID == old && renewed.InUse == 1, renewed)
	plain, err := in.ParseLease(oldID(0, "acme", "exports", nonce))
	in.expectCode("", "an old id", err)
	_, err = in.Renew(ctx, plain, 0)
	in.expectCode("", "renew again", err)
	in.expectCode("", "release it", in.Release(ctx, plain))
	_, err = in.Renew(ctx, plain, 0)
	in.expectCode(CodeLeaseNotFound, "after the release", err)

	for tenant, code := range map[string]errcode.Code{"ghost": errcode.TenantNotFound, "late": errcode.TenantSuspended} {
		id, err := in.ParseLease(oldID(0x02, tenant, "exports", nonce))
		in.expectCode("", tenant, err)
		_, err = in.Renew(ctx, id, 0)
		in.expectCode(code, tenant, err)
		keys, err := client.Keys(ctx, "rl:{"+tenant+"}*").Result()
		assert.True(t, err == nil && len(keys) <= 0, "%s has %v in Redis, %v", tenant, keys, err)
	}
	after := newInstance(t, url, patientClient(options))
	for _, text := range []string{old, oldID(0, "acme", "exports", nonce)} {
		_, err = after.ParseLease(text)
		in.expectCode(CodeLeaseNotFound, "after the end", err)
	}
}

// An id of a lease is valid on every instance with the same IDKey, and on no other instance.
func TestLease_IDOfAnotherKey_NotFound(t *testing.T) {
	t.Parallel()
	url := testenv.Postgres(t)
	in, same := newShared(t), newInstance(t, url, nil)
	other := newInstance(t, url, nil, func(c *Config) { c.IDKey = []byte("another key") })
	in.catalogue(concurrencyLimit("exports", 1))
	address := netip.MustParseAddr("2001:db8::1")
	held, _ := in.acquires(LeaseRequest{Tenant: "acme", Rule: "exports", Subject: "ann", IP: address})
	id, err := same.ParseLease(held.ID)
	assert.True(t, err == nil && id.Tenant == "acme" && id.Subject == "ann" &&
		id.Address == string(address.AsSlice()), "%+v, %v", id, err)
	_, err = other.ParseLease(held.ID)
	in.expectCode(CodeLeaseNotFound, "another key", err)
}

// A renewal uses the number of leases in the subject's override, as the acquisition did.
func TestLease_Renewal_CountsTheSubjectsOverride(t *testing.T) {
	t.Parallel()
	in := newShared(t).catalogue(concurrencyLimit("exports", 1, func(l *catalog.Limit) { l.Per = []string{"subject"} }))
	ctx := t.Context()
	in.putOverride(override.Override{Rule: "exports", Tenant: "acme", Subject: "ann", Burst: 7})
	req := LeaseRequest{Tenant: "acme", Rule: "exports", Subject: "ann", Key: "k"}
	testenv.Eventually(t, func() bool {
		held, err := in.Acquire(ctx, req)
		return err == nil && held.Limit == 7
	}, "the override is known")
	held, id := in.acquires(req) // the same lease, by its key
	renewed, err := in.Renew(ctx, id, 0)
	assert.True(t, err == nil && renewed.Limit == 7 && renewed.ID == held.ID, "%+v, %v", renewed, err)
}

// A NAT64 address is blocked if the IPv4 address in it is blocked. This is also true when a lease is renewed.
func TestLease_BlockOfAnEmbeddedAddress_EndsIt(t *testing.T) {
	t.Parallel()
	in := newShared(t).catalogue(concurrencyLimit("exports", 1))
	ctx := t.Context()
	_, id := in.acquires(LeaseRequest{Tenant: "acme", Rule: "exports", IP: netip.MustParseAddr("64:ff9b::c000:24d")})
	in.putBlock(block.Block{Kind: block.KindIP, Value: "192.0.2.0/24"})
	_, err := in.Renew(ctx, id, 0)
	_, blocked := errors.AsType[*Blocked](err)
	assert.True(t, blocked, err)
	again, err := in.Acquire(ctx, LeaseRequest{Tenant: "acme", Rule: "exports"})
	assert.True(t, err == nil && again.InUse == 1, "its place is free: %+v, %v", again, err)
}
