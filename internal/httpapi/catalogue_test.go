package httpapi

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

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
	if !d.DryRun || d.Counts.Created != 7 || len(d.Changes) != 7 {
		t.Errorf("%+v", d)
	}
	s.call("GET", "/v1/meters/calls", "").want(404)
	if d = s.apply(fmt.Sprintf(wholeCatalogue, "")); d.DryRun || d.Counts.Created != 7 {
		t.Errorf("%+v", d)
	}
	amount := func(c client.CatalogChange) bool {
		return c.Kind == "plan" && c.ID == "pro" && c.Action == client.CatalogChangeActionCreated && slices.ContainsFunc(c.Fields, func(f client.CatalogField) bool {
			return f.Field == "allowances[calls].amount" && f.Before == nil && string(f.After) == "9007199254740991"
		})
	}
	if !slices.ContainsFunc(d.Changes, amount) {
		t.Errorf("the plan is missing in %+v", d.Changes)
	}
	var m client.Meter
	if s.call("GET", "/v1/meters/calls", "").want(200).into(&m); m.Description != "a \"quoted\" \U0001F600 \u2028 / text" {
		t.Errorf("%q", m.Description)
	}
	exported := s.call("GET", "/v1/catalog", "").want(200)
	if d = s.apply(string(exported.body)); d.Counts.Unchanged != 6 || len(d.Changes) != 0 {
		t.Errorf("the export is another catalogue: %+v", d)
	}
	if !strings.Contains(string(exported.body), `"slow":{`) || strings.Contains(string(exported.body), `"t1":`) {
		t.Errorf("%s", exported.body)
	}
	var lines client.AuditList
	s.call("GET", "/v1/audit?action=plan.put", "").want(200).into(&lines)
	if len(lines.Items) != 1 || lines.Items[0].Actor.KeyID == "" {
		t.Errorf("%+v", lines)
	}
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
	if again := tag(); again != seen {
		t.Errorf("a dry run has changed the tag from %s to %s", seen, again)
	}
	for range 20 {
		if again := tag(); again != seen {
			t.Fatalf("the same catalogue has the tags %s and %s", seen, again)
		}
	}
	s.call("PUT", "/v1/blocks/ip/192.0.2.1", `{"reason":"abuse"}`).want(201)
	send(`,"dry_run":true`, seen).want(200) // the ETag does not depend on the blocks, so it is still valid
	s.call("PUT", "/v1/meters/theirs", `{"unit":"u"}`).want(201)
	for _, more := range []string{`,"dry_run":true`, ""} {
		if p := send(more, seen).problem(409, "precondition_failed"); p.Errors[0].Field != headerIfMatch {
			t.Errorf("%+v", p)
		}
	}
	for _, wrong := range []string{"*", `"17"`, "", strings.Trim(tag(), `"`)} {
		send("", wrong).problem(409, "precondition_failed")
	}
	send("", tag()).want(200)
	if again := tag(); again == seen {
		t.Error("the tag has not changed")
	}
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
	if d := s.apply(`{"limits":{}}`); d.Counts.Deleted != 0 || d.Counts.Unlisted == 0 {
		t.Errorf("%v", actions(d))
	}
	if d := s.apply(`{"tenants":{},"prune":true}`); d.Counts.Deleted != 0 {
		t.Errorf("%v", actions(d))
	}
	const keep = `{"limits":{"slow":{"per":["tenant","ip"],"kind":"fixed_window","rate":"5/m","match":{"route":"/search/*"}}},"meters":{"calls":{"unit":"call"}},"blocks":[],"prune":true%s}`
	want := []string{"deleted meter idle", "deleted limit other", "deleted block ip 192.0.2.0/24"}
	for _, more := range []string{`,"dry_run":true`, ""} {
		d := s.apply(fmt.Sprintf(keep, more))
		got := actions(d)
		for _, w := range want {
			if !slices.Contains(got, w) {
				t.Errorf("%s: %q lacks %q", more, got, w)
			}
		}
		if d.Counts.Deleted != 4 || len(d.Warnings) != 1 || !strings.Contains(d.Warnings[0], "meter credits stays") || !slices.Contains(got, "unlisted plan pro") {
			t.Errorf("%s: %+v", more, d)
		}
	}
	s.call("GET", "/v1/limits/other", "").want(404)
	s.call("GET", "/v1/meters/idle", "").want(404)
	s.call("GET", "/v1/meters/credits", "").want(200)
	s.call("GET", "/v1/plans/pro", "").want(200)
	var lines client.AuditList
	if s.call("GET", "/v1/audit?action=limit.delete", "").want(200).into(&lines); len(lines.Items) != 1 || lines.Items[0].Object.ID != "other" {
		t.Errorf("%+v", lines)
	}
}

func TestCatalogue_Prune_ReplacedLimit_Refused(t *testing.T) {
	t.Parallel()
	s := newService(t)
	s.apply(`{"limits":{"base":{"per":["tenant"],"kind":"token_bucket","rate":"1/s"},"better":{"per":["tenant"],"kind":"token_bucket","rate":"9/s","replaces":"base","match":{"tenant":"t"}}},
		"meters":{"m":{"unit":"u"}},"plans":{"p":{"allowances":[]}},"tenants":{"t":{"plan":"p"}}}`)
	answer := s.call("POST", "/v1/catalog", `{"limits":{"better":{"per":["tenant"],"kind":"token_bucket","rate":"9/s","replaces":"base","match":{"tenant":"t"}}},"prune":true}`)
	if answer.status < 400 || answer.status >= 500 || !strings.Contains(string(answer.body), "base") {
		t.Errorf("%d %s", answer.status, answer.body)
	}
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
		{`{"meters":null}`, "meters must be an object"},
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
		if !slices.ContainsFunc(f.Errors, func(e struct{ Field, Message string }) bool { return strings.HasPrefix(e.Field+" "+e.Message, c.want) }) || strings.Contains(string(answer.body), "(line") {
			t.Errorf("%s: %d %s, want %q", c.body, answer.status, answer.body, c.want)
		}
	}
	s.call("GET", "/v1/meters/m", "").want(404)
}
