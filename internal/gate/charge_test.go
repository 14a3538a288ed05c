package gate

import (
	"errors"
	"net/netip"
	"slices"
	"testing"
	"time"

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
	if _, left := in.charged(ChargeRequest{Request: request, Cost: 4}); len(left) != 2 || left["acme-fast"] != 45 || left["search"] != 6 {
		t.Error(left)
	}
	if _, left := in.charged(ChargeRequest{Request: request, Cost: 4, Rules: []string{"fast"}}); len(left) != 1 || left["acme-fast"] != 41 {
		t.Error(left)
	}
	if out, left := in.charged(ChargeRequest{Request: Request{}, Rules: []string{"search"}}); len(left) != 0 || out.ID != "" {
		t.Error("a limit that does not apply is charged", left)
	}
	dry := request
	dry.DryRun = true
	if out, left := in.charged(ChargeRequest{Request: dry}); left["search"] != 6 || out.ID != "" {
		t.Error(left)
	}
	over := ChargeRequest{Request: request, Cost: 7}
	over.Tenant = "acme"
	_, err := in.Charge(t.Context(), over)
	if limited, ok := errors.AsType[*RateLimited](err); !ok || !slices.Equal(limited.Violated, []string{"search"}) {
		t.Error(err)
	}
	over.Cost = ledger.MaxAmount
	if _, err = in.Charge(t.Context(), over); CodeOf(err) != CodeCostExceedsCapacity {
		t.Error(err)
	}
	over.Cost, over.Rules = 1, []string{"unknown"}
	if _, err = in.Charge(t.Context(), over); CodeOf(err) != errcode.NotFound {
		t.Error(err)
	}
	if _, left := in.charged(ChargeRequest{Request: request}); left["acme-fast"] != 40 || left["search"] != 5 {
		t.Error("a refused charge took tokens", left)
	}
	for range 500 {
		_, _ = in.Charge(t.Context(), ChargeRequest{Request: Request{Tenant: "acme"}})
	}
	if n := counted.ended.Load() - before; n > 10 {
		t.Errorf("506 charges took %d transactions", n)
	}
	ip := netip.MustParseAddr("192.0.2.1")
	for i := range 5 { // limits that count attempts are charged for a tenant that does not exist
		_, err := in.Charge(t.Context(), ChargeRequest{Request: Request{Tenant: "nobody", IP: ip}})
		if want := map[bool]errcode.Code{true: errcode.TenantNotFound, false: CodeRateLimited}[i < 3]; CodeOf(err) != want {
			t.Errorf("charge %d: %v", i, err)
		}
	}
}

func TestCharge_SuspendedOrBlocked_Refused(t *testing.T) {
	t.Parallel()
	in := newInstance(t, testenv.Postgres(t), nil)
	in.catalogue()
	in.putLimits(catalog.Limit{Rule: "fast", Per: []string{"tenant"}, Kind: "token_bucket", Rate: "5/day"})
	in.putTenant(catalog.Tenant{ID: "away", Plan: "basic", Status: "suspended"})
	for range 7 {
		if _, err := in.Charge(t.Context(), ChargeRequest{Request: Request{Tenant: "away"}}); CodeOf(err) != errcode.TenantSuspended {
			t.Error(err)
		}
	}
	in.putBlock(block.Block{Kind: "subject", Tenant: "acme", Value: "bot", Action: "block"})
	in.putBlock(block.Block{Kind: "subject", Tenant: "acme", Value: "friend", Action: "allow"})
	if _, err := in.Charge(t.Context(), ChargeRequest{Request: Request{Tenant: "acme", Subject: "bot"}}); CodeOf(err) != CodeForbidden {
		t.Error(err)
	}
	for range 7 {
		if out, _ := in.charged(ChargeRequest{Request: Request{Subject: "friend"}}); len(out.Limits) != 0 || out.ID != "" {
			t.Error("who is exempt is charged", out)
		}
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
			again, left := in.charged(keyed)
			if !again.Replayed || again.ID != first.ID || left["fast"] != 3 {
				t.Error(again, left)
			}
			keyed.Tenant, keyed.Cost = "acme", 3
			if _, err := in.Charge(t.Context(), keyed); CodeOf(err) != errcode.IdempotencyKeyReused {
				t.Error(err)
			}
			keyed.Key, keyed.Cost = "denied", 4
			for range 2 { // a denied charge releases its key
				if _, err := in.Charge(t.Context(), keyed); CodeOf(err) != CodeRateLimited {
					t.Error(err)
				}
			}
			keyed.Cost = 3
			if out, left := in.charged(keyed); out.Replayed || left["fast"] != 0 {
				t.Error(out)
			}
		})
	}
}

func TestRefundCharge_Once(t *testing.T) {
	t.Parallel()
	in := newShared(t)
	in.catalogue()
	in.putLimits(catalog.Limit{Rule: "a", Per: []string{"tenant"}, Kind: "token_bucket", Rate: "10/day"},
		catalog.Limit{Rule: "b", Per: []string{"tenant"}, Kind: "fixed_window", Rate: "10/day", Timezone: "tenant"})
	first, _ := in.charged(ChargeRequest{Cost: 3})
	in.charged(ChargeRequest{Cost: 3})
	c, err := in.ParseCharge(first.ID)
	if err != nil || c.Tenant() != "acme" {
		t.Fatal(c, err)
	}
	for i := range 3 {
		done, err := in.RefundCharge(t.Context(), c)
		if err != nil || done.Refunded != (i == 0) || i == 0 && (len(done.Limits) != 2 || done.Limits[0].Remaining != 7 || done.Limits[1].Remaining != 7) {
			t.Errorf("refund %d: %+v %v", i, done, err)
		}
	}
	if _, left := in.charged(ChargeRequest{Request: Request{DryRun: true}}); left["a"] != 7 || left["b"] != 7 {
		t.Error(left)
	}
	// An old charge cannot be refunded, because its bucket has refilled since.
	old, _ := in.charged(ChargeRequest{})
	if c, err = in.ParseCharge(old.ID); err != nil {
		t.Fatal(err)
	}
	c.issued = c.issued.Add(-72 * time.Hour)
	if done, err := in.RefundCharge(t.Context(), c); err != nil || done.Refunded {
		t.Error(done, err)
	}
	for i := range len(old.ID) {
		forged := []byte(old.ID)
		forged[i] ^= 1
		if _, err := in.ParseCharge(string(forged)); CodeOf(err) != errcode.NotFound {
			t.Fatalf("changed at %d: %v", i, err)
		}
	}
	for _, id := range []string{"", "x", old.ID + "A", old.ID[:20], "AQ"} {
		if _, err := in.ParseCharge(id); CodeOf(err) != errcode.NotFound {
			t.Errorf("%q: %v", id, err)
		}
	}
	if other := New(in.ledger, in.tenants.catalog, in.limiter, in.copies, Config{Once: claim.New(nil)}); true {
		if _, err := other.ParseCharge(old.ID); CodeOf(err) != errcode.NotFound {
			t.Error("another key signs the same")
		}
	}
}
