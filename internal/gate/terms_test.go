package gate

import (
	"errors"
	"slices"
	"testing"

	"github.com/quotasvc/quotasvc/internal/catalog"
	"github.com/quotasvc/quotasvc/internal/ledger"
	"github.com/quotasvc/quotasvc/internal/ratelimit"
)

func mustCompile(t *testing.T, l catalog.Limit) *rule {
	t.Helper()
	if l.Rule == "" {
		l.Rule = "r"
	}
	l.Kind, l.Rate = "token_bucket", "10/s"
	r, err := compileRule(&l)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestRule_AppliesToWhatItMatchesAndHasABucketFor(t *testing.T) {
	t.Parallel()
	tenant, subject, route := []string{"tenant"}, []string{"tenant", "subject"}, []string{"tenant", "route"}
	search := Request{Route: "search", Subject: "ann", Items: []ledger.Item{{Meter: "a"}, {Meter: "b"}}}
	bare := Request{Items: []ledger.Item{{Meter: "a"}}}
	for name, tc := range map[string]struct {
		limit catalog.Limit
		req   Request
		plan  string
		want  bool
	}{
		"everything":                   {catalog.Limit{Per: tenant}, bare, "", true},
		"its route":                    {catalog.Limit{Per: tenant, Match: catalog.Match{Route: "search"}}, search, "", true},
		"another route":                {catalog.Limit{Per: tenant, Match: catalog.Match{Route: "export"}}, search, "", false},
		"a route that is a prefix":     {catalog.Limit{Per: tenant, Match: catalog.Match{Route: "sea"}}, search, "", false},
		"no route":                     {catalog.Limit{Per: tenant, Match: catalog.Match{Route: "search"}}, bare, "", false},
		"its meter, second item":       {catalog.Limit{Per: tenant, Match: catalog.Match{Meter: "b"}}, search, "", true},
		"another meter":                {catalog.Limit{Per: tenant, Match: catalog.Match{Meter: "b"}}, bare, "", false},
		"its plan":                     {catalog.Limit{Per: tenant, Match: catalog.Match{Plan: "pro"}}, bare, "pro", true},
		"another plan":                 {catalog.Limit{Per: tenant, Match: catalog.Match{Plan: "pro"}}, bare, "free", false},
		"all of it":                    {catalog.Limit{Per: tenant, Match: catalog.Match{Route: "search", Meter: "a", Plan: "pro"}}, search, "pro", true},
		"all but one":                  {catalog.Limit{Per: tenant, Match: catalog.Match{Route: "search", Meter: "a", Plan: "pro"}}, search, "free", false},
		"per subject, with one":        {catalog.Limit{Per: subject}, search, "", true},
		"per subject, without":         {catalog.Limit{Per: subject}, bare, "", false},
		"per subject alone, with one":  {catalog.Limit{Per: []string{"subject"}}, search, "", true},
		"per route, with one":          {catalog.Limit{Per: route}, search, "", true},
		"per route, without":           {catalog.Limit{Per: route}, bare, "", false},
		"per route and subject, a lot": {catalog.Limit{Per: []string{"route", "tenant", "subject"}}, search, "", true},
	} {
		if got := mustCompile(t, tc.limit).appliesTo(&tc.req, tc.plan); got != tc.want {
			t.Errorf("%s: applies = %v, want %v", name, got, tc.want)
		}
	}
}

func TestRule_EveryCombinationOfItsDimensionsHasABucketOfItsOwn(t *testing.T) {
	t.Parallel()
	both := mustCompile(t, catalog.Limit{Per: []string{"tenant", "subject", "route"}})
	seen := map[string]Request{}
	for _, req := range []Request{
		{Subject: "a", Route: "b"}, {Subject: "b", Route: "a"}, {Subject: "ab", Route: "c"}, {Subject: "a", Route: "bc"}, {Subject: "a", Route: "c"},
	} {
		d := both.dimension(&req)
		if other, twice := seen[d]; twice {
			t.Errorf("%+v and %+v share a bucket", req, other)
		}
		seen[d] = req
	}
	req := Request{Subject: "x", Route: "x"}
	one, other := mustCompile(t, catalog.Limit{Per: []string{"subject"}}), mustCompile(t, catalog.Limit{Per: []string{"tenant", "route"}})
	if one.dimension(&req) == other.dimension(&req) {
		t.Error("a subject and a route of the same name share a bucket")
	}
	if got := mustCompile(t, catalog.Limit{Per: []string{"tenant"}}).dimension(&req); got != "" {
		t.Errorf("a rule per tenant divides its bucket: %q", got)
	}
}

func TestCheckLimit_NamesTheFieldItCannotEnforce(t *testing.T) {
	t.Parallel()
	good := catalog.Limit{Rule: "r", Per: []string{"tenant"}, Kind: "token_bucket", Rate: "10/s"}
	if err := CheckLimit(&good); err != nil {
		t.Errorf("a good limit: %v", err)
	}
	for field, spoil := range map[string]func(*catalog.Limit){
		"per[1]": func(l *catalog.Limit) { l.Per = []string{"tenant", "ip"} },
		"per[0]": func(l *catalog.Limit) { l.Per = []string{"global"} },
		"per":    func(l *catalog.Limit) { l.Per = []string{"route"} },
		"rate":   func(l *catalog.Limit) { l.Rate = "10/fortnight" },
		"burst":  func(l *catalog.Limit) { l.Burst = ledger.MaxAmount },
		"cost":   func(l *catalog.Limit) { l.Cost = 11 },
		"kind":   func(l *catalog.Limit) { l.Kind = "gcra" },
	} {
		bad := good
		spoil(&bad)
		fault, ok := errors.AsType[*catalog.FieldError](CheckLimit(&bad))
		if !ok || fault.Field != field {
			t.Errorf("%s: %v", field, fault)
		}
	}
}

func TestTerms_APlansRuleReplacesTheGlobalOneOfItsName(t *testing.T) {
	t.Parallel()
	in := newShared(t)
	global := func(rule, rate string) {
		t.Helper()
		l := catalog.Limit{Rule: rule, Per: []string{"tenant"}, Kind: "token_bucket", Rate: rate}
		if _, _, err := in.terms.catalog.PutLimit(t.Context(), l); err != nil {
			t.Fatal(err)
		}
	}
	global("burst", "100/s")
	global("daily", "1000/day")
	in.catalogue(catalog.Limit{Rule: "burst", Per: []string{"tenant"}, Kind: "token_bucket", Rate: "5/s"})
	in.putTenant(catalog.Tenant{ID: "acme", Plan: "basic"})
	eventually(t, "the global limits are in the snapshot", func() bool { return len(in.terms.catalog.Snapshot().Limits) == 2 })
	names := func(tenant string) (out []string) {
		f, err := in.terms.of(t.Context(), tenant)
		if err != nil {
			t.Fatal(err)
		}
		req := ask("", "calls", 1)
		for _, r := range f.rulesFor(&req) {
			out = append(out, r.compiled.ID+" "+r.compiled.Rate.String())
		}
		return out
	}
	if got, want := names("acme"), []string{"burst 5/s", "daily 1000/day"}; !slices.Equal(got, want) {
		t.Errorf("acme is under %v, want %v", got, want)
	}
	if got, want := names("nobody"), []string{"burst 100/s", "daily 1000/day"}; !slices.Equal(got, want) {
		t.Errorf("a tenant nobody knows is under %v, want %v", got, want)
	}
}

func TestFacts_NoMoreRulesThanOneRequestMayBeChargedOn(t *testing.T) {
	t.Parallel()
	f := facts{rules: make([]*rule, ratelimit.MaxCharges+1)}
	for i := range f.rules {
		f.rules[i] = mustCompile(t, catalog.Limit{Per: []string{"tenant"}})
	}
	req := ask("", "calls", 1)
	if got := len(f.rulesFor(&req)); got != ratelimit.MaxCharges {
		t.Errorf("%d rules apply, want %d", got, ratelimit.MaxCharges)
	}
}
