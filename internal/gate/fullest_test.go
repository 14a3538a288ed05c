package gate

import (
	"context"
	"fmt"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/catalog"
	"github.com/quotasvc/quotasvc/internal/catalog/override"
	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/lab/testenv"
)

// fullest returns the fullest buckets of a rule, each as text.
func (in *instance) fullest(rule string, most int) []string {
	in.t.Helper()
	found, complete, err := in.FullestBuckets(in.t.Context(), rule, most)
	assert.True(in.t, err == nil && complete, "complete: %t, %v", complete, err)
	var out []string
	for _, b := range found {
		out = append(out, fmt.Sprintf("%s %s%s%s %d/%d", b.Tenant, b.Subject, b.Route, b.IP, b.Used, b.Limit))
	}
	return out
}

// Each bucket is listed with the rate and burst in force. Plans have this limit in different forms, tenants change to
// another plan, and overrides exist.
func TestFullestBuckets_PlansAndOverrides_NumbersInForce(t *testing.T) {
	t.Parallel()
	url := testenv.Postgres(t)
	in := newInstance(t, url, patientClient(testenv.Redis(t)))
	limit := func(rate, kind string, per ...string) catalog.Limit {
		return catalog.Limit{Rule: "r", Per: per, Kind: kind, Rate: rate}
	}
	in.catalogue(limit("20/day", "sliding_log", "tenant"))
	in.putPlan(catalog.Plan{ID: "wide", Limits: []catalog.Limit{limit("100/day", "token_bucket", "tenant")}})
	in.putPlan(catalog.Plan{ID: "subjects", Limits: []catalog.Limit{limit("8/day", "token_bucket", "subject")}})
	in.putPlan(catalog.Plan{ID: "zoned", Limits: []catalog.Limit{{Rule: "r", Per: []string{"tenant"}, Kind: "fixed_window", Rate: "6/day", Timezone: catalog.ZoneOfTenant}}})
	in.putPlan(catalog.Plan{ID: "none"})
	in.putLimits(limit("10/day", "token_bucket", "tenant"))
	for tenant, plan := range map[string]string{"wide": "wide", "subjects": "subjects", "general": "none", "moves": "none", "zoned": "zoned", "override": "none", "expired": "none"} {
		in.putTenant(catalog.Tenant{ID: tenant, Plan: plan, Timezone: "Pacific/Kiritimati"})
	}
	in.putOverride(override.Override{Rule: "r", Tenant: "override", Rate: "5/day"})
	in.putOverride(override.Override{Rule: "r", Tenant: "subjects", Rate: "9/day"})
	in.putOverride(override.Override{Rule: "r", Tenant: "subjects", Subject: "vip", Rate: "400/day"})
	in.putOverride(override.Override{Rule: "r", Tenant: "expired", Rate: "5/day", ExpiresAt: time.Now().Add(time.Hour)})
	execute(t, url, "UPDATE limit_overrides SET expires_at = '2020-01-01Z' WHERE tenant_id = 'expired'", "SELECT pg_notify('quotasvc_catalog', 'tenant:expired')")
	in.awaitAnnouncements(url)
	for tenant, cost := range map[string]int64{"acme": 19, "wide": 50, "general": 8, "moves": 9, "zoned": 6, "override": 2, "expired": 3} {
		in.charged(ChargeRequest{Request: Request{Tenant: tenant}, Cost: cost})
	}
	in.charged(ChargeRequest{Request: Request{Tenant: "subjects", Subject: "vip"}, Cost: 20})
	in.charged(ChargeRequest{Request: Request{Tenant: "subjects", Subject: "u"}, Cost: 9})
	in.putTenant(catalog.Tenant{ID: "moves", Plan: "basic"})
	in.awaitAnnouncements(url)
	want := []string{"subjects u 9/9", "zoned  6/6", "acme  19/20", "general  8/10", "wide  50/100", "override  2/5", "expired  3/10", "subjects vip 20/400"}
	for _, most := range []int{1, 3, 100} {
		assert.Equal(t, want[:min(most, len(want))], in.fullest("r", most))
	}
	_, _, err := in.FullestBuckets(t.Context(), "unknown", 10)
	assert.True(t, CodeOf(err) == errcode.NotFound, err)
}

// A bucket that this instance charged is listed with its names. A bucket that another instance charged is listed with
// a hash, which is the same every time.
func TestFullestBuckets_ChargedHere_Named(t *testing.T) {
	t.Parallel()
	url, server := testenv.Postgres(t), testenv.RedisPrivate(t)
	in, other := newInstance(t, url, patientClient(server.Options())), newInstance(t, url, patientClient(server.Options()))
	in.catalogue()
	in.putLimits(catalog.Limit{Rule: "r", Per: []string{"tenant", "subject", "route", "ip"}, Kind: "token_bucket", Rate: "3/day", Mode: catalog.ModeShadow})
	testenv.Eventually(t, func() bool {
		_, _, err := other.FullestBuckets(t.Context(), "r", 10)
		return err == nil
	}, "the other instance has the limit")
	charge := func(in *instance, subject, ip string, times int) {
		for range times {
			in.charged(ChargeRequest{Request: Request{Subject: subject, Route: "/a/b", IP: netip.MustParseAddr(ip)}})
		}
	}
	charge(in, "u", "2001:db8::1", 4)
	charge(in, "u", "192.0.2.1", 2)
	assert.Equal(t, []string{"acme u/a/b2001:db8::/64 3/3", "acme u/a/b192.0.2.1 2/3"}, in.fullest("r", 10))
	charge(other, "u", "192.0.2.1", 1)
	found, _, err := other.FullestBuckets(t.Context(), "r", 10)
	require.True(t, err == nil && len(found) == 2, "%+v, %v", found, err)
	for _, b := range found {
		known := b.IP == "192.0.2.1"
		assert.True(t, known != (b.Bucket != "") && (known || len(b.Bucket) == 16 && b.BucketNames == (BucketNames{})) && b.Used == 3, b)
	}
}

// While one search runs, other callers wait a short time.
func TestFullestBuckets_OneAtATime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := &Gate{searching: make(chan struct{}, 1)}
		leave, err := g.enterSearch(t.Context())
		require.NoError(t, err)
		began := time.Now()
		_, _, err = g.FullestBuckets(t.Context(), "r", 10)
		assert.Equal(t, errcode.QueueFull, CodeOf(err))
		assert.Equal(t, searchWait, time.Since(began))
		time.AfterFunc(searchWait/10, leave)
		_, err = g.enterSearch(t.Context())
		assert.NoError(t, err)
	})
}

func TestFullestBuckets_RedisAway_Unavailable(t *testing.T) {
	t.Parallel()
	server := testenv.RedisPrivate(t)
	in := newInstance(t, testenv.Postgres(t), patientClient(server.Options()))
	limit := limitNamed("r", "", catalog.Match{})
	limit.Rate = "10/day"
	in.catalogue(limit)
	in.charged(ChargeRequest{})
	assert.Len(t, in.fullest("r", 10), 1)
	server.Kill()
	_, _, err := in.FullestBuckets(t.Context(), "r", 10)
	in.expectCode(errcode.Unavailable, "without Redis", err)
	over, cancel := context.WithCancel(t.Context())
	cancel()
	_, complete, err := in.FullestBuckets(over, "r", 10)
	assert.False(t, err == nil && complete, "complete after the caller has left")
}
