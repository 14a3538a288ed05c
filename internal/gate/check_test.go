package gate

import (
	"fmt"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/catalog"
	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/lab/testenv"
	"github.com/quotasvc/quotasvc/internal/ledger"
)

// checkFrom repeats a check until the answer comes from the given source. A new copy is in Redis only after a moment.
func (in *instance) checkFrom(source Source, req Request) (got Check, err error) {
	in.t.Helper()
	if source == SourceLedger {
		req = fromPostgres(req)
	}
	testenv.Eventually(in.t, func() bool {
		got, err = in.Check(in.t.Context(), req)
		return err != nil || got.Source == source
	}, "the answer comes from the "+string(source))
	return got, err
}

// A check from any source must give the same answer as the consume that follows.
func TestCheck_AnswersWithTheCodeOfConsume(t *testing.T) {
	t.Parallel()
	in := newShared(t)
	in.catalogue(
		catalog.Limit{Rule: "search", Per: []string{"tenant"}, Match: catalog.Match{Route: "search"}, Kind: "token_bucket", Rate: "1/day"},
		catalog.Limit{Rule: "shadow", Per: []string{"tenant"}, Match: catalog.Match{Route: "quiet"}, Kind: "token_bucket", Rate: "1/day", Mode: "shadow"},
	)
	in.topUp("topup", "credits", 5)
	ctx := t.Context()
	route := func(req Request, route string) Request { req.Route = route; return req }
	for _, name := range []string{"search", "quiet"} { // the buckets are empty afterwards
		in.consumes("", name, route(request(name, "calls", 1), name))
	}
	two := func(first, second int64) Request {
		req := request("k", "calls", first)
		req.Items = append(req.Items, ledger.Item{Meter: "credits", Amount: second})
		return req
	}
	for name, tc := range map[string]struct {
		req  Request
		code errcode.Code
		item int
		kind string
	}{
		"allowed":                     {request("k", "calls", 8), "", -1, ""},
		"a unit too many, it renews":  {request("k", "calls", 9), errcode.QuotaExceeded, 0, "allowance"},
		"a unit too many, prepaid":    {request("k", "credits", 6), errcode.CreditsExhausted, 0, "credit"},
		"never granted, not in plan":  {request("k", "other", 1), errcode.MeterNotInPlan, 0, ""},
		"two items":                   {two(8, 5), "", -1, ""},
		"two items, the second short": {two(8, 6), errcode.CreditsExhausted, 1, "credit"},
		"two items, both short":       {two(9, 6), errcode.CreditsExhausted, 1, "credit"},
		"rate limited":                {route(request("k", "calls", 1), "search"), CodeRateLimited, -1, ""},
		"rate limited and short":      {route(request("k", "calls", 9), "search"), CodeRateLimited, -1, ""},
		"a shadow rule would deny":    {route(request("k", "calls", 1), "quiet"), "", -1, ""},
		"no such meter":               {request("k", "nothing", 1), errcode.NotFound, 0, ""},
		"no such tenant":              {Request{Tenant: "nobody", Key: "k", Items: request("", "calls", 1).Items}, errcode.TenantNotFound, 0, ""},
		"the same meter twice":        {Request{Tenant: "acme", Key: "k", Items: append(request("", "calls", 1).Items, request("", "calls", 1).Items...)}, errcode.InvalidArgument, 0, ""},
		"nothing asked for":           {Request{Tenant: "acme", Key: "k"}, errcode.InvalidArgument, 0, ""},
		"no amount":                   {request("k", "calls", 0), errcode.InvalidArgument, 0, ""},
		"beyond the largest amount":   {request("k", "calls", ledger.MaxAmount+1), errcode.InvalidArgument, 0, ""},
		"the largest amount":          {request("k", "calls", ledger.MaxAmount), errcode.CreditsExhausted, 0, "credit"},
	} {
		in.consumes(tc.code, name+": consume", dryRun(tc.req))
		for _, source := range []Source{SourceLedger, SourceCache} {
			if source == SourceCache && len(tc.req.Items) > 0 && tc.req.Items[0].Amount > 10 {
				continue // a copy does not know whether more than the allowance will ever be there
			}
			got, err := in.checkFrom(source, tc.req)
			switch tc.code {
			case errcode.NotFound, errcode.TenantNotFound, errcode.InvalidArgument:
				in.expectCode(tc.code, name+": check", err)
				continue
			}
			if !assert.NoError(t, err, "%s: check of %s: %v", name, source, err) {
				continue
			}
			assert.Equal(t, tc.code, got.Code, "%s from %s", name, source)
			assert.True(t, got.Allowed == (tc.code == "") && got.Item == tc.item && got.Source == source,
				"%s: allowed %v, item %d from %s; want item %d", name, got.Allowed, got.Item, got.Source, tc.item)
			assert.Equal(t, tc.kind != "", got.Limiting != nil, "%s: limiting %+v", name, got.Limiting)
			assert.False(t, got.Limiting != nil && got.Limiting.Kind != tc.kind, "%s: limiting %+v", name, got.Limiting)
			assert.True(t, (got.RetryAfter > 0) == (tc.code == CodeRateLimited || tc.code == errcode.QuotaExceeded),
				"%s: retry after %s with %q", name, got.RetryAfter, got.Code)
		}
	}
	in.putTenant(catalog.Tenant{ID: "acme", Plan: "basic", Status: catalog.StatusSuspended})
	for _, req := range []Request{request("k", "calls", 1), request("k", "calls", 9), fromPostgres(request("k", "calls", 1))} {
		got, err := in.Check(ctx, req)
		assert.True(t, err == nil && got.Code == errcode.TenantSuspended && got.Limiting == nil,
			"suspended: check returns %+v, %v", got, err)
		in.consumes(errcode.TenantSuspended, "suspended", req)
	}
}

func TestCheck_CopyAndPostgres_GiveTheSameNumbers(t *testing.T) {
	t.Parallel()
	in := newShared(t).catalogue()
	in.debits("", "a debit", request("k", "calls", 4))
	in.topUp("topup", "calls", 3)
	for _, amount := range []int64{9, 10} {
		truth := in.checks(fromPostgres(request("", "calls", amount)))
		got, err := in.checkFrom(SourceCache, request("", "calls", amount))
		require.NoError(t, err)
		assert.True(t, got.Items[0] == truth.Items[0],
			"%d: from the copy\n%+v\nfrom postgresql\n%+v", amount, got.Items[0], truth.Items[0])
		assert.True(t, got.Items[0].MaxAllowedNow == 9 && got.Items[0].Limit == 13,
			"at most %d of %d now, want 9 of 13", got.Items[0].MaxAllowedNow, got.Items[0].Limit)
	}
	got := in.checks(request("", "calls", 11)) // a copy does not know that the next period has the top-up as well
	assert.True(t, got.Source == SourceLedger && got.Items[0].WouldSucceedAt.Equal(got.Items[0].ResetAt), "got %+v", got)
}

func TestCheck_SeesOwnDebitsAtOnce_OthersSoon(t *testing.T) {
	t.Parallel()
	a, b := newTwo(t)
	a.catalogue()
	for used := int64(1); used <= 5; used++ {
		a.debits("", "a debit", request("k"+string(rune('0'+used)), "calls", 1))
		left := a.checks(request("", "calls", 1)).Items[0].Remaining
		require.Equal(t, 10-used, left, "left for the same instance after %d debits", used)
		testenv.Eventually(t, func() bool {
			got, err := b.Check(t.Context(), request("", "calls", 1))
			return err == nil && got.Items[0].Remaining == 10-used
		}, "the other instance sees the debit")
	}
}

// If the plan permits overage, a copy cannot prove a denial, so the check reads PostgreSQL.
func TestCheck_Overage_ReadsPostgres(t *testing.T) {
	t.Parallel()
	in := newShared(t).catalogue()
	calls := yearly("calls", 10)
	calls.Overage = &catalog.Overage{Policy: "allow", Cap: new(int64(5))}
	in.putPlan(catalog.Plan{ID: "generous", Allowances: []catalog.Allowance{calls}})
	in.putTenant(catalog.Tenant{ID: "rich", Plan: "generous"})
	of := func(req Request) Request { return forTenant("rich", req) }
	in.debits("", "a debit", of(request("k", "calls", 9)))
	for amount, want := range map[int64]errcode.Code{1: "", 6: "", 7: errcode.QuotaExceeded} {
		got, err := in.Check(t.Context(), of(request("", "calls", amount)))
		assert.True(t, err == nil && got.Code == want && got.Source == SourceLedger && got.Items[0].MaxAllowedNow == 6,
			"%d of 1 left and 5 overage: %+v, %v; want %q from the ledger", amount, got, err, want)
		in.consumes(want, "consume", dryRun(of(request("dry", "calls", amount))))
	}
}

func TestCheck_NewTerms_AreSeenAtOnce(t *testing.T) {
	t.Parallel()
	in := newShared(t).catalogue()
	in.topUp("topup", "other", 1) // this meter has a period without an end: only new terms end it
	got, err := in.Check(t.Context(), request("", "other", 2))
	require.True(t, err == nil && got.Code == errcode.CreditsExhausted, "before: %+v, %v", got, err)
	in.putPlan(catalog.Plan{ID: "more", Allowances: []catalog.Allowance{yearly("other", 100)}})
	_, err = in.tenants.catalog.PatchTenant(t.Context(), "acme", catalog.TenantPatch{Plan: new("more"), Apply: "now"})
	require.NoError(t, err)
	got, err = in.Check(t.Context(), request("", "other", 2))
	assert.True(t, err == nil && got.Allowed && got.Items[0].Remaining == 101,
		"after the change of plan: %+v, %v", got, err)
}

func TestCheck_LocalMode_UsesLocalCopies(t *testing.T) {
	t.Parallel()
	in := newInstance(t, testenv.Postgres(t), nil).catalogue(twoADay)
	for i, want := range []Source{SourceLedger, SourceLocal} {
		got, err := in.Check(t.Context(), request("", "calls", 1))
		assert.True(t, err == nil && got.Source == want && !got.Degraded && len(got.Limits) == 1,
			"check %d: %+v, %v; want it from %s", i, got, err, want)
	}
	in.consumes("", "a consume of 4", request("k", "calls", 4))
	got := in.checks(request("", "calls", 7))
	assert.True(t, got.Code == errcode.QuotaExceeded && got.Limits[0].Remaining == 1, "after a consume of 4: %+v", got)
}

// A check of a tenant that does not exist announces no balance in Redis. After many announcements this process would
// announce all balances.
func TestCheck_UnknownTenant_AsksNobodyToPublish(t *testing.T) {
	t.Parallel()
	options := testenv.Redis(t)
	in := newInstance(t, testenv.Postgres(t), patientClient(options)).catalogue()
	client := redis.NewClient(options)
	defer func() { _ = client.Close() }()
	for i := range 20 {
		req := forTenant(fmt.Sprint("nobody-", i), request("", "calls", 1))
		_, err := in.Check(t.Context(), req)
		in.expectCode(errcode.TenantNotFound, req.Tenant, err)
	}
	_, err := in.checkFrom(SourceCache, request("", "calls", 1)) // so that commits publish copies
	require.NoError(t, err)
	n, err := client.ZCard(t.Context(), "quota:interest").Result()
	assert.True(t, err == nil && n == 1, "%d balances were announced, %v; want the one that exists", n, err)
}
