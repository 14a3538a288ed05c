package httpapi

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/quotasvc/quotasvc/client"
)

// featured creates plan pro with features, and tenant feat with this plan.
func (s *service) featured() *service {
	s.t.Helper()
	s.catalogue()
	s.call("PUT", "/v1/plans/pro", `{"allowances":[{"meter":"calls","amount":10,"every":"year","anchor":"calendar"}],"features":{"sso":true,"max_upload_mb":500,"beta":false,"seats":0}}`).want(201)
	s.call("PUT", "/v1/tenants/feat", `{"plan":"pro"}`).want(201)
	return s
}

func TestFeatures_PlanAndTenant_AnswerChecksAndConsumes(t *testing.T) {
	t.Parallel()
	s := newService(t).featured()
	features := func(want string, overridden ...string) {
		t.Helper()
		s.eventually("features "+want, func() bool {
			got := decoded[client.TenantFeatures](s.call("GET", "/v1/tenants/feat/features", "").want(200))
			return got.Plan == "pro" && fmt.Sprint(got.Features) == "map["+want+"]" && slices.Equal(got.Overridden, overridden)
		})
	}
	features("beta:false max_upload_mb:500 seats:0 sso:true")
	a := s.call("GET", "/v1/plans/pro", "").want(200)
	assert.Contains(t, string(a.body), `"max_upload_mb":500`)
	check := func(more string, allowed bool, code client.ProblemCode) {
		t.Helper()
		got := decoded[client.CheckAnswer](s.call("POST", "/v1/check", `{"tenant":"feat",`+more+`}`).want(200))
		assert.True(t, got.Allowed == allowed && got.Code == code && got.Items != nil, "%s: %+v", more, got)
	}
	const items = `,"items":[{"meter":"calls","amount":4}]`
	check(`"feature":"sso"`, true, "")
	check(`"feature":"max_upload_mb"`, true, "")
	check(`"feature":"sso"`+items, true, "")
	check(`"feature":"sso","items":[{"meter":"calls","amount":11}]`, false, "credits_exhausted")
	for _, name := range []string{"beta", "seats", "unknown"} {
		check(`"feature":"`+name+`"`, false, "feature_not_in_plan")
		check(`"feature":"`+name+`"`+items, false, "feature_not_in_plan")
		p := s.send("/v1/consume", "k-"+name, `{"tenant":"feat","feature":"`+name+`"`+items+`}`).problem(403, "feature_not_in_plan")
		assert.Contains(t, p.Detail, name, p)
		s.send("/v1/consume", "l-"+name, `{"tenant":"feat","feature":"`+name+`"}`).problem(403, "feature_not_in_plan")
	}
	assert.EqualValues(t, 10, s.remaining("feat", "calls"), "remain after refused features")
	s.send("/v1/consume", "k1", `{"tenant":"feat","feature":"sso"`+items+`}`).want(200)
	s.send("/v1/consume", "k2", `{"tenant":"feat","feature":"sso"}`).want(200)
	assert.EqualValues(t, 6, s.remaining("feat", "calls"), "remain")
	a = s.call("POST", "/v1/check/batch", `{"checks":[{"tenant":"feat","feature":"beta"},{"tenant":"feat"`+items+`},{"tenant":"feat","feature":"sso"}]}`).want(200)
	assert.True(t, strings.Count(string(a.body), `"allowed":true`) == 2 && strings.Contains(string(a.body), `"feature_not_in_plan"`),
		"%s", a.body)

	s.call("PATCH", "/v1/tenants/feat", `{"features":{"beta":true,"max_upload_mb":5}}`).want(200)
	features("beta:true max_upload_mb:5 seats:0 sso:true", "beta", "max_upload_mb")
	check(`"feature":"beta"`, true, "")
	s.call("PATCH", "/v1/tenants/feat", `{"features":{"beta":null}}`).want(200)
	features("beta:false max_upload_mb:5 seats:0 sso:true", "max_upload_mb")
	s.call("PUT", "/v1/plans/pro", `{"allowances":[],"features":{"beta":true},"apply":"now"}`).want(200)
	features("beta:true max_upload_mb:5", "max_upload_mb")
	s.call("PUT", "/v1/tenants/feat", `{"plan":"pro","status":"suspended"}`).want(200)
	s.eventually("it is suspended", func() bool {
		return strings.Contains(string(s.call("POST", "/v1/check", `{"tenant":"feat","feature":"beta"}`).want(200).body), `"tenant_suspended"`)
	})
	s.call("POST", "/v1/check", `{"tenant":"nobody","feature":"beta"}`).problem(404, "tenant_not_found")
	s.call("GET", "/v1/tenants/nobody/features", "").problem(404, "tenant_not_found")
}

func TestFeatures_BadInput_NamesField(t *testing.T) {
	t.Parallel()
	s := newService(t).featured()
	many := make([]string, 101)
	for i := range many {
		many[i] = fmt.Sprintf(`"f%d":true`, i)
	}
	for features, field := range map[string]string{
		`{"sso":"yes"}`: "features.sso", `{"sso":null}`: "features.sso", `{"sso":-1}`: "features.sso", `{"sso":1.5}`: "features.sso", `{"sso":[]}`: "features.sso",
		`{"sso":9007199254740992}`: "features.sso", `{"a b":true}`: "features.a b", `{"` + strings.Repeat("x", 200) + `":true}`: "features.", `[]`: "features", `true`: "features",
		`{` + strings.Join(many, ",") + `}`: "features",
	} {
		for path, body := range map[string]string{"/v1/plans/bad": `{"allowances":[],"features":%s}`, "/v1/tenants/bad": `{"plan":"pro","features":%s}`} {
			a := s.call("PUT", path, fmt.Sprintf(body, features))
			assert.True(t, a.status == 400 && strings.Contains(string(a.body), `"field":"`+field),
				"%s %.60s: %d %.300s", path, features, a.status, a.body)
		}
	}
	s.call("POST", "/v1/check", `{"tenant":"feat"}`).refused("items")
	s.call("POST", "/v1/check", `{"tenant":"feat","feature":"a b"}`).refused("feature")
	s.call("POST", "/v1/check/batch", `{"checks":[{"tenant":"feat","feature":"sso"},{"tenant":"feat"}]}`).refused("checks[1].items")
	s.send("/v1/consume", "k", `{"tenant":"feat"}`).refused("items")
	s.send("/v1/debits", "k", `{"tenant":"feat","feature":"sso"}`).want(400)
}
