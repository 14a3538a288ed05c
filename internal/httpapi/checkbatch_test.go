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
	"github.com/quotasvc/quotasvc/internal/gate"
)

func TestCheckBatch_AnswersInOrder(t *testing.T) {
	t.Parallel()
	s := newService(t).catalogue()
	s.tenant("mine")
	s.rules(`{"per":["tenant"],"kind":"token_bucket","rate":"5/day","match":{"route":"/search"}}`)
	const item = `"items":[{"meter":"calls","amount":%d}]`
	checks := []string{
		fmt.Sprintf(`{"tenant":"acme",`+item+`}`, 1), fmt.Sprintf(`{"tenant":"acme",`+item+`,"route":"/search"}`, 2),
		fmt.Sprintf(`{"tenant":"acme",`+item+`}`, 100), fmt.Sprintf(`{"tenant":"nobody",`+item+`}`, 1), fmt.Sprintf(`{"tenant":"mine",`+item+`}`, 3),
		`{"tenant":"acme","items":[{"meter":"unknown","amount":1}]}`,
	}
	type result struct {
		client.CheckAnswer
		Status int    `json:"status"`
		Type   string `json:"type"`
	}
	send := func(checks []string, extra ...string) (results []result) {
		t.Helper()
		a := s.call("POST", "/v1/check/batch", `{"checks":[`+strings.Join(checks, ",")+`]}`, extra...).want(200)
		var answer struct {
			Results []json.RawMessage `json:"results"`
		}
		err := json.Unmarshal(a.body, &answer)
		require.True(t, err == nil && len(answer.Results) == len(checks), "%v: %s", err, a.body)
		for _, raw := range answer.Results {
			var r result
			require.NoError(t, json.Unmarshal(raw, &r))
			results = append(results, r)
		}
		return results
	}
	results := send(checks)
	for i, want := range []struct {
		allowed  bool
		code     client.ProblemCode
		status   int
		required int64
		limits   int
	}{{true, "", 0, 1, 0}, {true, "", 0, 2, 1}, {false, "credits_exhausted", 0, 100, 0}, {false, "tenant_not_found", 404, 0, 0}, {true, "", 0, 3, 0}, {false, "not_found", 404, 0, 0}} {
		r := results[i]
		if want.code == "not_found" && strings.HasPrefix(string(r.Code), "meter") {
			continue
		}
		if r.Allowed != want.allowed || r.Code != want.code || r.Status != want.status || len(r.Limits) != want.limits || want.required > 0 && r.Items[0].Required != want.required {
			t.Errorf("check %d: %+v", i, r)
		}
	}
	key := s.newKey(`{"name":"n","scopes":["use"],"tenant":"mine"}`)
	for i, r := range send(checks, "Authorization", "Bearer "+key.Secret) {
		assert.True(t, (i != 4 || r.Allowed) && (i == 4 || r.Status == 403), "with a key of mine, check %d: %+v", i, r)
	}
	got := send(slices.Repeat(checks[:2], gate.CheckBatchMax/2))
	assert.True(t, got[len(got)-1].Allowed, got[len(got)-1])
	s.call("POST", "/v1/check/batch", `{"checks":[`+strings.Join(slices.Repeat(checks[:1], gate.CheckBatchMax+1), ",")+`]}`).refused("checks")
	s.call("POST", "/v1/check/batch", `{"checks":[`+checks[0]+`,{"tenant":"a b","items":[]}]}`).refused("checks[1].tenant")
}
