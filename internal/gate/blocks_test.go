package gate

import (
	"errors"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/catalog"
	"github.com/quotasvc/quotasvc/internal/catalog/block"
	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/lab/testenv"
)

// putBlock stores a block and waits until it is in force.
func (in *instance) putBlock(b block.Block) {
	in.t.Helper()
	_, _, err := in.tenants.catalog.PutBlock(in.t.Context(), b)
	require.NoError(in.t, err)
	tenant, subject, ip := "anybody", "", netip.Addr{}
	switch b.Kind {
	case block.KindTenant:
		tenant = b.Value
	case block.KindSubject:
		tenant, subject = b.Tenant, b.Value
	default:
		ip = netip.MustParsePrefix(b.Value).Addr()
	}
	testenv.Eventually(in.t, func() bool { // repeated, because a reload may have begun before the change
		blocked, exempt := in.tenants.catalog.Blocks().Find(tenant, subject, ip, time.Now())
		return exempt && b.Action == block.ActionAllow || blocked != nil && blocked.Kind == b.Kind && blocked.Value == b.Value
	}, "the block is in force")
}

func TestBlocks_Refuse_BeforeLimitsAndBalances(t *testing.T) {
	t.Parallel()
	in := newShared(t).catalogue(twoADay)
	in.putTenant(catalog.Tenant{ID: "vip", Plan: "basic"})
	end := time.Now().Add(time.Hour).Truncate(time.Second).UTC()
	in.putBlock(block.Block{Kind: "subject", Tenant: "acme", Value: "eve", Reason: "abuse", ExpiresAt: end})
	in.putBlock(block.Block{Kind: "ip", Value: "10.0.0.0/8"})
	in.putBlock(block.Block{Kind: "tenant", Value: "vip", Action: "allow"})
	in.putBlock(block.Block{Kind: "tenant", Value: "nobody"})

	with := func(tenant, subject, ip string) Request {
		req := request("k", "calls", 1)
		req.Tenant, req.Subject = tenant, subject
		if ip != "" {
			req.IP = netip.MustParseAddr(ip)
		}
		return req
	}
	for _, tc := range []struct {
		req  Request
		want Blocked
	}{
		{with("acme", "eve", ""), Blocked{Kind: "subject", Value: "eve", Reason: "abuse", ExpiresAt: end}},
		{with("acme", "", "10.1.2.3"), Blocked{Kind: "ip", Value: "10.0.0.0/8"}},
		{with("vip", "", "::ffff:10.1.2.3"), Blocked{Kind: "ip", Value: "10.0.0.0/8"}},
		{with("nobody", "", ""), Blocked{Kind: "tenant", Value: "nobody"}}, // the blocked tenant does not exist
	} {
		_, err := in.Consume(t.Context(), tc.req)
		blocked, ok := errors.AsType[*Blocked](err)
		assert.True(t, ok && *blocked == tc.want && CodeOf(err) == CodeForbidden,
			"%+v: %v, want %+v", tc.req, err, tc.want)
		check, err := in.Check(t.Context(), tc.req)
		assert.True(t, err == nil && !check.Allowed && check.Code == CodeForbidden && *check.Blocked == tc.want && len(check.Limits) == 0 &&
			check.Item == -1, "%+v: %+v, %v", tc.req, check, err)
		assert.False(t, tc.req.Tenant == "acme" && (len(check.Items) != 1 || check.Items[0].Remaining != 10),
			"%+v: %+v", tc.req, check.Items)
		refusal := check.Refusal()
		assert.Equal(t, CodeForbidden, CodeOf(refusal), refusal)
	}
	tokens, units := in.remainingTokens(), in.remaining("calls")
	assert.True(t, tokens == 2 && units == 10, "%d tokens and %d units are left, want 2 and 10", tokens, units)
	// A debit records work that is already done. A block does not prevent it.
	in.debits("", "a debit of a blocked subject", with("acme", "eve", ""))
}

func TestBlocks_Allow_SkipsLimitsNotBalances(t *testing.T) {
	t.Parallel()
	in := newShared(t).catalogue(twoADay)
	in.putBlock(block.Block{Kind: "tenant", Value: "acme", Action: "allow"})
	for i := range 10 {
		req := request(string(rune('a'+i)), "calls", 1)
		got, err := in.Consume(t.Context(), req)
		in.expectCode("", "consume", err)
		assert.Empty(t, got.Limits, got.Limits)
	}
	in.consumes(errcode.QuotaExceeded, "more than the balance", request("more", "calls", 1))
}

func TestBlocks_EndWhenExpiredOrDeleted(t *testing.T) {
	t.Parallel()
	var ahead time.Duration
	in := newShared(t, func(cfg *Config) { cfg.Now = func() time.Time { return time.Now().Add(ahead) } }).catalogue()
	in.putBlock(block.Block{Kind: "tenant", Value: "acme", ExpiresAt: time.Now().Add(time.Hour)})
	req := request("k1", "calls", 1)
	in.consumes(CodeForbidden, "blocked", req)
	ahead = time.Hour
	in.consumes("", "after its end", req)
	ahead = 0
	require.NoError(t, in.tenants.catalog.DeleteBlock(t.Context(), "tenant", "acme", ""))
	testenv.Eventually(t, func() bool {
		_, err := in.Consume(t.Context(), request("k2", "calls", 1))
		return err == nil
	}, "the block is gone")
}

func TestBlocks_PostgresAway_StillRefuse(t *testing.T) {
	t.Parallel()
	url, end := breakable(t, testenv.Postgres(t))
	in := newInstance(t, url, patientClient(testenv.Redis(t))).catalogue()
	in.putBlock(block.Block{Kind: "tenant", Value: "acme"})
	end()
	check, err := in.Check(t.Context(), request("k", "calls", 1))
	assert.True(t, err == nil && check.Code == CodeForbidden && !check.Allowed, "%+v, %v", check, err)
	in.consumes(CodeForbidden, "blocked", request("k", "calls", 1))
}
