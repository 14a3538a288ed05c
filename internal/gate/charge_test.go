package gate

import (
	"errors"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/catalog"
	"github.com/quotasvc/quotasvc/internal/catalog/block"
	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/lab/testenv"
	"github.com/quotasvc/quotasvc/internal/ledger"
	"github.com/quotasvc/quotasvc/internal/store/claim"
)

// charged makes one charge, by default for acme. It returns the answer, and the remaining tokens of each limit by
// name.
func (in *instance) charged(req ChargeRequest) (out Charged, left map[string]int64) {
	in.t.Helper()
	if req.Tenant == "" {
		req.Tenant = "acme"
	}
	out, err := in.Charge(in.t.Context(), req)
	require.NoError(in.t, err)
	left = map[string]int64{}
	for _, v := range out.Limits {
		left[v.Rule] = v.Remaining
	}
	return out, left
}

// refusesCharge makes one charge, which must be refused with the given code.
func (in *instance) refusesCharge(code errcode.Code, req ChargeRequest) {
	in.t.Helper()
	_, err := in.Charge(in.t.Context(), req)
	in.expectCode(code, "a charge", err)
}

func TestCharge_AppliesLimitsWithoutPostgres(t *testing.T) {
	t.Parallel()
	in, counted := newCounted(t)
	in.catalogue()
	in.putLimits(catalog.Limit{Rule: "fast", Per: []string{"tenant"}, Kind: "token_bucket", Rate: "100/day"},
		catalog.Limit{Rule: "search", Per: []string{"tenant", "subject"}, Kind: "fixed_window", Rate: "10/day", Match: catalog.Match{Route: "/search", Method: "GET"}},
		catalog.Limit{Rule: "addresses", Per: []string{"ip"}, Kind: "token_bucket", Rate: "3/day"},
		catalog.Limit{Rule: "acme-fast", Per: []string{"tenant"}, Kind: "token_bucket", Rate: "50/day", Match: catalog.Match{Tenant: "acme"}, Replaces: "fast"},
		catalog.Limit{Rule: "calls", Per: []string{"tenant"}, Kind: "token_bucket", Rate: "10/day", Match: catalog.Match{Meter: "calls"}})
	in.charged(ChargeRequest{}) // so that the tenant is in memory
	before := counted.ended.Load()
	request := Request{Subject: "u", Route: "/search", Method: "GET"}
	_, left := in.charged(ChargeRequest{Request: request, Cost: 4})
	assert.True(t, len(left) == 2 && left["acme-fast"] == 45 && left["search"] == 6, left)
	_, left = in.charged(ChargeRequest{Request: request, Cost: 4, Rules: []string{"fast"}})
	assert.True(t, len(left) == 1 && left["acme-fast"] == 41, left)
	out, left := in.charged(ChargeRequest{Request: Request{}, Rules: []string{"search"}})
	assert.True(t, len(left) == 0 && out.ID == "", "a limit that does not apply is charged: %v", left)
	out, left = in.charged(ChargeRequest{Request: dryRun(request)})
	assert.True(t, left["search"] == 6 && out.ID == "", left)
	over := ChargeRequest{Request: request, Cost: 7}
	over.Tenant = "acme"
	_, err := in.Charge(t.Context(), over)
	limited, ok := errors.AsType[*RateLimited](err)
	assert.True(t, ok && slices.Equal(limited.Violated, []string{"search"}), err)
	over.Cost = ledger.MaxAmount
	in.refusesCharge(CodeCostExceedsCapacity, over)
	over.Cost, over.Rules = 1, []string{"unknown"}
	in.refusesCharge(errcode.NotFound, over)
	_, left = in.charged(ChargeRequest{Request: request})
	assert.True(t, left["acme-fast"] == 40 && left["search"] == 5, "a refused charge took tokens: %v", left)
	for range 500 {
		_, _ = in.Charge(t.Context(), ChargeRequest{Request: Request{Tenant: "acme"}})
	}
	n := counted.ended.Load() - before
	assert.True(t, n <= 10, "506 charges took %d transactions", n)
	ip := netip.MustParseAddr("192.0.2.1")
	for i := range 5 { // limits that count attempts are charged for a tenant that does not exist
		want := map[bool]errcode.Code{true: errcode.TenantNotFound, false: CodeRateLimited}[i < 3]
		in.refusesCharge(want, ChargeRequest{Request: Request{Tenant: "nobody", IP: ip}})
	}
}

func TestCharge_SuspendedOrBlocked_Refused(t *testing.T) {
	t.Parallel()
	in := newInstance(t, testenv.Postgres(t), nil).catalogue()
	in.putLimits(catalog.Limit{Rule: "fast", Per: []string{"tenant"}, Kind: "token_bucket", Rate: "5/day"})
	in.putTenant(catalog.Tenant{ID: "away", Plan: "basic", Status: "suspended"})
	for range 7 {
		in.refusesCharge(errcode.TenantSuspended, ChargeRequest{Request: Request{Tenant: "away"}})
	}
	in.putBlock(block.Block{Kind: "subject", Tenant: "acme", Value: "bot", Action: "block"})
	in.putBlock(block.Block{Kind: "subject", Tenant: "acme", Value: "friend", Action: "allow"})
	in.refusesCharge(CodeForbidden, ChargeRequest{Request: Request{Tenant: "acme", Subject: "bot"}})
	for range 7 {
		out, _ := in.charged(ChargeRequest{Request: Request{Subject: "friend"}})
		assert.True(t, len(out.Limits) == 0 && out.ID == "", "who is exempt is charged: %v", out)
	}
}

func TestCharge_Key_ChargesOnce(t *testing.T) {
	t.Parallel()
	for name, redis := range map[string]bool{"redis": true, "process": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var in *instance
			if redis {
				in = newShared(t)
			} else {
				in = newInstance(t, testenv.Postgres(t), nil)
			}
			in.catalogue()
			in.putLimits(catalog.Limit{Rule: "fast", Per: []string{"tenant"}, Kind: "token_bucket", Rate: "5/day"})
			keyed := ChargeRequest{Request: Request{Key: "k"}, Cost: 2}
			first, _ := in.charged(keyed)
			again, after := in.charged(keyed)
			assert.True(t, again.Replayed && again.ID == first.ID && after["fast"] == 3, "%v, %v", again, after)
			keyed.Tenant, keyed.Cost = "acme", 3
			in.refusesCharge(errcode.IdempotencyKeyReused, keyed)
			keyed.Key, keyed.Cost = "denied", 4
			for range 2 { // a denied charge releases its key
				in.refusesCharge(CodeRateLimited, keyed)
			}
			keyed.Cost = 3
			out, left := in.charged(keyed)
			assert.True(t, !out.Replayed && left["fast"] == 0, out)
		})
	}
}

func TestRefundCharge_Once(t *testing.T) {
	t.Parallel()
	in := newShared(t).catalogue()
	in.putLimits(catalog.Limit{Rule: "a", Per: []string{"tenant"}, Kind: "token_bucket", Rate: "10/day"},
		catalog.Limit{Rule: "b", Per: []string{"tenant"}, Kind: "fixed_window", Rate: "10/day", Timezone: "tenant"})
	first, _ := in.charged(ChargeRequest{Cost: 3})
	in.charged(ChargeRequest{Cost: 3})
	c, err := in.ParseCharge(first.ID)
	require.True(t, err == nil && c.Tenant() == "acme", "%v, %v", c, err)
	for i := range 3 {
		done, err := in.SettleCharge(t.Context(), c, 0)
		if err != nil || done.Settled != (i == 0) || i == 0 && (len(done.Limits) != 2 || done.Limits[0].Remaining != 7 || done.Limits[1].Remaining != 7) {
			t.Errorf("refund %d: %+v %v", i, done, err)
		}
	}
	_, left := in.charged(ChargeRequest{Request: Request{DryRun: true}})
	assert.True(t, left["a"] == 7 && left["b"] == 7, left)
	// An old charge cannot be refunded, because its bucket has refilled since.
	old, _ := in.charged(ChargeRequest{})
	c, err = in.ParseCharge(old.ID)
	require.NoError(t, err)
	c.issued = c.issued.Add(-72 * time.Hour)
	done, err := in.SettleCharge(t.Context(), c, 0)
	assert.True(t, err == nil && !done.Settled, "%v, %v", done, err)
	for i := range len(old.ID) {
		forged := []byte(old.ID)
		forged[i] ^= 1
		_, err = in.ParseCharge(string(forged))
		require.True(t, CodeOf(err) == errcode.ChargeNotFound, "changed at %d: %v", i, err)
	}
	for _, id := range []string{"", "x", old.ID + "A", old.ID[:20], "AQ"} {
		_, err = in.ParseCharge(id)
		assert.True(t, CodeOf(err) == errcode.ChargeNotFound, "%q: %v", id, err)
	}
	other := New(in.ledger, in.tenants.catalog, in.limiter, in.copies, Config{Once: claim.New(nil)})
	_, err = other.ParseCharge(old.ID)
	assert.True(t, CodeOf(err) == errcode.ChargeNotFound, "another key signs the same")
}

// A charge is settled or refunded once, also by many at once.
func TestSettleCharge_AtOnce_OneCounts(t *testing.T) {
	t.Parallel()
	in := newShared(t).catalogue()
	in.putLimits(catalog.Limit{Rule: "a", Per: []string{"tenant"}, Kind: "fixed_window", Rate: "100/day"})
	first, _ := in.charged(ChargeRequest{Cost: 50})
	c := testenv.Must(t).Get(in.ParseCharge(first.ID))
	var all sync.WaitGroup
	var settled atomic.Int64
	for n := range 20 {
		all.Go(func() {
			cost := int64(n%2) * 20
			done, err := in.SettleCharge(t.Context(), c, cost)
			assert.NoError(t, err)
			if done.Settled {
				assert.Zero(t, settled.Swap(100-cost), "settled twice")
			}
		})
	}
	all.Wait()
	_, left := in.charged(ChargeRequest{Request: Request{DryRun: true}})
	assert.Equal(t, settled.Load(), left["a"])
}

// The ids of the version before have no units, so they can only be refunded.
func TestSettleCharge_EarlierVersion_OnlyRefunds(t *testing.T) {
	t.Parallel()
	in := newShared(t).catalogue()
	in.putLimits(catalog.Limit{Rule: "a", Per: []string{"tenant"}, Kind: "fixed_window", Rate: "100/day"})
	first, _ := in.charged(ChargeRequest{Cost: 50})
	c := testenv.Must(t).Get(in.ParseCharge(first.ID))
	for i := range c.receipt.Charges {
		c.receipt.Charges[i].Unit = 0
	}
	_, err := in.SettleCharge(t.Context(), c, 20)
	assert.Equal(t, errcode.InvalidArgument, CodeOf(err), "%v", err)
	done, err := in.SettleCharge(t.Context(), c, 0)
	assert.True(t, err == nil && done.Settled && done.Limits[0].Remaining == 100, "%+v, %v", done, err)
}

// A limit that was lowered since the charge bounds what is taken now, and not what was taken then.
func TestSettleCharge_LimitLowered_GivesNothingBack(t *testing.T) {
	t.Parallel()
	in := newShared(t).catalogue()
	in.putLimits(catalog.Limit{Rule: "a", Per: []string{"tenant"}, Kind: "fixed_window", Rate: "100/day"})
	first, _ := in.charged(ChargeRequest{Cost: 90})
	c := testenv.Must(t).Get(in.ParseCharge(first.ID))
	in.putLimits(catalog.Limit{Rule: "a", Per: []string{"tenant"}, Kind: "fixed_window", Rate: "10/day"})
	done, err := in.SettleCharge(t.Context(), c, 1000)
	require.True(t, err == nil && done.Settled, "%+v, %v", done, err)
	in.putLimits(catalog.Limit{Rule: "a", Per: []string{"tenant"}, Kind: "fixed_window", Rate: "100/day"})
	_, left := in.charged(ChargeRequest{Request: Request{DryRun: true}})
	assert.Equal(t, int64(10), left["a"])
}
