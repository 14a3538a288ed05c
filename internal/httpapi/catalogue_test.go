package httpapi

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/client"
)

const wholeCatalogue = `{"meters":{"calls":{"unit":"call","description":"a \"quoted\" \ud83d\ude00 \u2028 / text"},"credits":{"unit":"credit"}},
	"plans":{"pro":{"allowances":[{"meter":"calls","amount":9007199254740991,"every":"month","anchor":"tenant","overflow":{"meter":"credits","price":2}},
		{"meter":"credits","amount":0,"every":"once","anchor":"calendar"}],"limits":[{"rule":"fast","per":["tenant"],"kind":"token_bucket","rate":"60/s"}]}},
	"limits":{"slow":{"per":["tenant","ip"],"kind":"fixed_window","rate":"5/m","match":{"route":"/search/*"}}},
	"tenants":{"t1":{"plan":"pro","metadata":{"n":[null,1e3]}}},
	"blocks":[{"kind":"ip","value":"192.0.2.0/24","reason":"abuse"},{"kind":"subject","tenant":"t1","value":"u1"}]%s}`

func (s *service) apply(body string) (d client.CatalogDiff) {
	s.t.Helper()
	s.call("POST", "/v1/catalog", body).want(200).into(&d)
	return d
}

func TestCatalogue_ApplyThenExport_ChangesNothing(t *testing.T) {
	t.Parallel()
	s := newService(t)
	d := s.apply(fmt.Sprintf(wholeCatalogue, `,"dry_run":true`))
	assert.True(t, d.DryRun && d.Counts.Created == 7 && len(d.Changes) == 7, d)
	s.call("GET", "/v1/meters/calls", "").want(404)
	d = s.apply(fmt.Sprintf(wholeCatalogue, ""))
	assert.True(t, !d.DryRun && d.Counts.Created == 7, d)
	amount := func(c client.CatalogChange) bool {
		return c.Kind == "plan" && c.ID == "pro" && c.Action == client.CatalogChangeActionCreated && slices.ContainsFunc(c.Fields, func(f client.CatalogField) bool {
			return f.Field == "allowances[calls].amount" && f.Before == nil && string(f.After) == "9007199254740991"
		})
	}
	assert.True(t, slices.ContainsFunc(d.Changes, amount), "the plan is missing in %+v", d.Changes)
	m := decoded[client.Meter](s.call("GET", "/v1/meters/calls", "").want(200))
	assert.Equal(t, "a \"quoted\" \U0001F600 \u2028 / text", m.Description)
	exported := s.call("GET", "/v1/catalog", "").want(200)
	d = s.apply(string(exported.body))
	assert.True(t, d.Counts.Unchanged == 6 && len(d.Changes) == 0, "the export is another catalogue: %+v", d)
	assert.True(t, strings.Contains(string(exported.body), `"slow":{`) &&
		!strings.Contains(string(exported.body), `"t1":`), "%s", exported.body)
	lines := decoded[client.AuditList](s.call("GET", "/v1/audit?action=plan.put", "").want(200))
	assert.True(t, len(lines.Items) == 1 && lines.Items[0].Actor.KeyID != "", lines)
}

func TestCatalogue_IfMatch_RefusesWhatWasChangedMeanwhile(t *testing.T) {
	t.Parallel()
	s := newService(t)
	s.apply(`{"meters":{"calls":{"unit":"call"}},"plans":{"p":{"allowances":[],"features":{"a":true,"b":2,"c":true,"d":4,"e":true,"f":6}}}}`)
	tag := func() string { return s.call("GET", "/v1/catalog", "").want(200).header.Get("ETag") }
	seen := tag()
	const mine = `{"meters":{"calls":{"unit":"call","description":"mine"}}%s}`
	send := func(more, tag string) *answer {
		return s.call("POST", "/v1/catalog", fmt.Sprintf(mine, more), headerIfMatch, tag)
	}
	send(`,"dry_run":true`, seen).want(200)
	assert.Equal(t, seen, tag(), "a dry run has changed the tag from %s to", seen)
	for range 20 {
		require.Equal(t, seen, tag(), "the same catalogue has the tags %s and", seen)
	}
	s.call("PUT", "/v1/blocks/ip/192.0.2.1", `{"reason":"abuse"}`).want(201)
	send(`,"dry_run":true`, seen).want(200) // the ETag does not depend on the blocks, so it is still valid
	s.call("PUT", "/v1/meters/theirs", `{"unit":"u"}`).want(201)
	for _, more := range []string{`,"dry_run":true`, ""} {
		p := send(more, seen).problem(409, "precondition_failed")
		assert.True(t, p.Errors[0].Field == headerIfMatch, p)
	}
	for _, wrong := range []string{"*", `"17"`, "", strings.Trim(tag(), `"`)} {
		send("", wrong).problem(409, "precondition_failed")
	}
	send("", tag()).want(200)
	assert.True(t, tag() != seen, "the tag has not changed")
}

func TestCatalogue_Prune_DeletesWhatIsNotNamedAndNotUsed(t *testing.T) {
	t.Parallel()
	s := newService(t)
	s.apply(fmt.Sprintf(wholeCatalogue, ""))
	s.apply(`{"meters":{"idle":{"unit":"u"}},"limits":{"other":{"per":["tenant"],"kind":"token_bucket","rate":"1/s"}}}`)
	actions := func(d client.CatalogDiff) (out []string) {
		for _, c := range d.Changes {
			out = append(out, fmt.Sprintf("%s %s %s", c.Action, c.Kind, c.ID))
		}
		return out
	}
	// Without prune, objects that a section does not list are kept. With prune, the objects of a missing section are
	// kept.
	d := s.apply(`{"limits":{}}`)
	assert.True(t, d.Counts.Deleted == 0 && d.Counts.Unlisted != 0, "%v", actions(d))
	d = s.apply(`{"tenants":{},"prune":true}`)
	assert.Zero(t, d.Counts.Deleted, "%v", actions(d))
	const keep = `{"limits":{"slow":{"per":["tenant","ip"],"kind":"fixed_window","rate":"5/m","match":{"route":"/search/*"}}},"meters":{"calls":{"unit":"call"}},"blocks":[],"prune":true%s}`
	want := []string{"deleted meter idle", "deleted limit other", "deleted block ip 192.0.2.0/24"}
	for _, more := range []string{`,"dry_run":true`, ""} {
		d := s.apply(fmt.Sprintf(keep, more))
		got := actions(d)
		for _, w := range want {
			assert.True(t, slices.Contains(got, w), "%s: %q lacks %q", more, got, w)
		}
		assert.True(t, d.Counts.Deleted == 4 && len(d.Warnings) == 1 && strings.Contains(d.Warnings[0], "meter credits stays") &&
			slices.Contains(got, "unlisted plan pro"), "%s: %+v", more, d)
	}
	s.call("GET", "/v1/limits/other", "").want(404)
	s.call("GET", "/v1/meters/idle", "").want(404)
	s.call("GET", "/v1/meters/credits", "").want(200)
	s.call("GET", "/v1/plans/pro", "").want(200)
	lines := decoded[client.AuditList](s.call("GET", "/v1/audit?action=limit.delete", "").want(200))
	assert.True(t, len(lines.Items) == 1 && lines.Items[0].Object.ID == "other", lines)
}

func TestCatalogue_Prune_ReplacedLimit_Refused(t *testing.T) {
	t.Parallel()
	s := newService(t)
	s.apply(`{"limits":{"base":{"per":["tenant"],"kind":"token_bucket","rate":"1/s"},"better":{"per":["tenant"],"kind":"token_bucket","rate":"9/s","replaces":"base","match":{"tenant":"t"}}},
		"meters":{"m":{"unit":"u"}},"plans":{"p":{"allowances":[]}},"tenants":{"t":{"plan":"p"}}}`)
	answer := s.call("POST", "/v1/catalog", `{"limits":{"better":{"per":["tenant"],"kind":"token_bucket","rate":"9/s","replaces":"base","match":{"tenant":"t"}}},"prune":true}`)
	assert.True(t, answer.status >= 400 && answer.status < 500 && strings.Contains(string(answer.body), "base"),
		"%d %s", answer.status, answer.body)
	s.call("GET", "/v1/limits/base", "").want(200)
}

func TestCatalogue_Faults_AllAtOnceAndNothingDone(t *testing.T) {
	t.Parallel()
	s := newService(t)
	type faults struct {
		Errors []struct{ Field, Message string }
	}
	for _, c := range []struct{ body, want string }{
		{`{}`, "body must have at least one of the sections"},
		{`{"meters":null}`, "body must have at least one of the sections"},
		{`{"meters":{"m":{}},"plans":{"p":{"allowances":[{"meter":"m","amount":1.5,"every":"month","anchor":"calendar"}]}}}`, "meters.m.unit is required"},
		{`{"meters":{"m":{}},"plans":{"p":{"allowances":[{"meter":"m","amount":1.5,"every":"month","anchor":"calendar"}]}}}`, "plans.p.allowances[0].amount must be an integer"},
		{`{"plans":{"p":{"allowances":[{"meter":"none","amount":1,"every":"month","anchor":"calendar"}]}}}`, `plans.p.allowances[0].meter names the meter "none", which does not exist`},
		{`{"meters":{"m":{"unit":"u","unti":1}}}`, "meters.m.unti "},
		{`{"meters":{"m":{"unit":"u"},"m":{"unit":"v"}}}`, "meters.m is a duplicate field"},
		{`{"meters":[1]}`, "meters must be an object"},
		{`{"meters":{"m":null}}`, "meters.m must not be null"},
		{`{"blocks":[{"kind":"ip","kind":"ip"}]}`, "blocks[0].kind is a duplicate field"},
		{`{"metres":{}}`, "metres is an unknown field"},
		{`{"meters":{"m":{"unit":"u"}},"dry_run":1}`, "dry_run "},
	} {
		answer := s.call("POST", "/v1/catalog", c.body)
		var f faults
		_ = json.Unmarshal(answer.body, &f)
		assert.True(t, slices.ContainsFunc(f.Errors, func(e struct{ Field, Message string }) bool { return strings.HasPrefix(e.Field+" "+e.Message, c.want) }) &&
			!strings.Contains(string(answer.body), "(line"), "%s: %d %s, want %q", c.body, answer.status, answer.body, c.want)
	}
	s.call("GET", "/v1/meters/m", "").want(404)
}

func TestPutPlan_KeepsAllowance(t *testing.T) {
	t.Parallel()
	s := newService(t).catalogue()
	const body = `{"allowances":[{"meter":"calls","amount":10,"every":"month","anchor":"tenant","rollover":{"min":2,"max":5},
		"overage":{"policy":"allow","cap":0},"overflow":{"meter":"credits","price":3},"per_subject":0},
		{"meter":"credits","amount":0,"every":"day","anchor":"calendar","overage":{"policy":"deny"},"rollover":{"max":1}},
		{"meter":"other","amount":5,"every":"once","anchor":"calendar","expires_in_days":14}]}`
	want := []client.Allowance{
		{
			Meter: "calls", Amount: 10, Every: client.AllowanceEveryMonth, Anchor: client.AllowanceAnchorTenant, Rollover: &client.Rollover{Min: 2, Max: 5},
			Overage: &client.Overage{Policy: client.OveragePolicyAllow, Cap: new(int64(0))}, Overflow: &client.Overflow{Meter: "credits", Price: client.Price{Units: 3, Per: 1}}, PerSubject: new(int64(0)),
		},
		{
			Meter: "credits", Every: client.AllowanceEveryDay, Anchor: client.AllowanceAnchorCalendar, Rollover: &client.Rollover{Max: 1},
			Overage: &client.Overage{Policy: client.OveragePolicyDeny},
		},
		{Meter: "other", Amount: 5, Every: client.AllowanceEveryOnce, Anchor: client.AllowanceAnchorCalendar, ExpiresInDays: new(int64(14))},
	}
	for _, a := range []*answer{s.call("PUT", "/v1/plans/p", body).want(201), s.call("PUT", "/v1/plans/p", body).want(200), s.call("GET", "/v1/plans/p", "").want(200)} {
		got := decoded[client.Plan](a)
		assert.Equal(t, want, got.Allowances)
		assert.True(t, got.Version == 1 && strings.Contains(string(a.body), `"price":3}`), "version %d", got.Version)
	}
}

func TestPutPlan_ContradictoryAllowance_400(t *testing.T) {
	t.Parallel()
	s := newService(t).catalogue()
	before := s.state()
	for more, field := range map[string]string{
		`"rollover":{"min":6,"max":5}`:               "rollover.min",
		`"rollover":{"min":1}`:                       "rollover.max",
		`"overage":{"policy":"deny","cap":1}`:        "overage.cap",
		`"overage":{"cap":1}`:                        "overage.policy",
		`"overflow":{"meter":"calls","price":1}`:     "overflow.meter",
		`"overflow":{"meter":"credits"}`:             "overflow.price",
		`"overflow":{"meter":"credits","price":0}`:   "overflow.price",
		`"overflow":{"meter":"credits","price":1.5}`: "overflow.price",
		`"per_subject":-1`:                           "per_subject",
		`"expires_in_days":14`:                       "expires_in_days",
		`"expires_in_days":0`:                        "expires_in_days",
		`"expires_in_days":3661`:                     "expires_in_days",
	} {
		body := `{"allowances":[{"meter":"calls","amount":10,"every":"month","anchor":"tenant",` + more + `}]}`
		s.call("PUT", "/v1/plans/p", body).refused("allowances[0]." + field)
	}
	s.call("PUT", "/v1/plans/p", `{"allowances":[{"meter":"calls","amount":1,"every":"once","anchor":"tenant","rollover":{"max":1}}]}`).
		refused("allowances[0].rollover")
	const overflowing = `"amount":1,"every":"month","anchor":"tenant","overflow":{"price":1,"meter":`
	s.call("PUT", "/v1/plans/p", `{"allowances":[{"meter":"calls",`+overflowing+`"credits"}},{"meter":"credits",`+overflowing+`"other"}}]}`).
		refused("allowances[0].overflow.meter")
	s.call("PUT", "/v1/plans/p", `{"allowances":[{"meter":"calls",`+overflowing+`"credits"}}]}`).refused("allowances[0].overflow.meter") // p has no credits
	assert.Equal(t, before, s.state())
	a := s.call("PUT", "/v1/plans/p", `{"allowances":[{"meter":"calls","amount":10,"every":"month","anchor":"tenant","overflow":{"meter":"none","price":1}}]}`)
	assert.False(t, a.status != 400 && a.status != 404 ||
		!strings.Contains(string(a.body), `"field":"allowances[0].overflow.meter"`), "%d %s", a.status, a.body)
}

func TestPutPlan_PriceAsRatio(t *testing.T) {
	t.Parallel()
	s := newService(t).catalogue()
	const plan = `{"allowances":[{"meter":"calls","amount":5,"every":"month","anchor":"tenant","overflow":{"meter":"credits","price":%s}},
		{"meter":"credits","amount":0,"every":"once","anchor":"calendar"}]}`
	put := func(price string) *answer { return s.call("PUT", "/v1/plans/ai", fmt.Sprintf(plan, price)) }
	for _, price := range []string{
		`{}`, `{"units":1}`, `{"units":0,"per":5}`, `{"units":1,"per":0}`, `{"units":1,"per":2.5}`, `{"units":1,"per":9007199254740992}`, `"1/1000"`,
		`{"units":1,"per":3,"rounded":"up"}`, `[1,1000]`, `null`, `{"units":1,"units":2,"per":3}`,
	} {
		a := put(price)
		assert.True(t, a.status == 400 && strings.Contains(string(a.body), "price"),
			"%s: %d %s", price, a.status, a.body)
	}
	a := put(`{"units":1,"per":1000}`)
	a.want(201)
	assert.Contains(t, string(a.body), `"price":{"units":1,"per":1000}`, "%s", a.body)
	a = put(`{"units":1,"per":1000}`)
	assert.Contains(t, string(a.want(200).body), `"version":1`, "the same once more: %s", a.body)
	s.call("PUT", "/v1/tenants/chat", `{"plan":"ai"}`).want(201)
	s.send("/v1/tenants/chat/grants", "paid", `{"meter":"credits","amount":2,"source":"topup"}`).want(201)
	s.debit("k1", "chat", "calls", 1505).want(200)
	assert.Zero(t, s.remaining("chat", "credits"), "credits remain")
	s.send("/v1/refunds", "r1", `{"tenant":"chat","operation_id":"k1","amount":600}`).want(200)
	assert.EqualValues(t, 1, s.remaining("chat", "credits"), "credits remain after a refund of 600 of 1,500")
	a = put(`{"units":2,"per":1}`)
	assert.Contains(t, string(a.want(200).body), `"price":2}`, "an integer per one is an integer: %s", a.body)
}

func TestDebit_LargestPriceIsExact(t *testing.T) {
	t.Parallel()
	s := newService(t).catalogue()
	const largest = 9007199254740991
	s.call("PUT", "/v1/plans/dear", fmt.Sprintf(`{"allowances":[
		{"meter":"calls","amount":0,"every":"year","anchor":"calendar","overflow":{"meter":"credits","price":%d}},
		{"meter":"credits","amount":%d,"every":"year","anchor":"calendar"}]}`, largest, largest)).want(201)
	s.call("PUT", "/v1/tenants/rich", `{"plan":"dear"}`).want(201)
	p := s.debit("k1", "rich", "calls", largest).problem(402, "credits_exhausted")
	assert.True(t, *p.Available == 1 && *p.Required == largest, p)
	s.debit("k2", "rich", "calls", 2).want(402)
	assert.EqualValues(t, largest, s.remaining("rich", "credits"), "credits remain")
	s.debit("k3", "rich", "calls", 1).want(200)
	assert.Zero(t, s.remaining("rich", "credits"), "credits remain")
}
