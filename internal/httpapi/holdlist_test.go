package httpapi

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/client"
)

func TestListHolds_ByStatus(t *testing.T) {
	t.Parallel()
	s := newService(t).spendable()
	hold := func(id, more string) {
		s.send("/v1/holds", "hold-"+id, fmt.Sprintf(`{"tenant":"acme","hold_id":%q,%s}`, id, more)).want(201)
	}
	hold("a-over", `"subject":"u1","items":[{"meter":"calls","amount":11},{"meter":"jobs","amount":2}]`) // credits pay for one call
	hold("b-part", `"items":[{"meter":"jobs","amount":2}]`)
	hold("c-gone", `"items":[{"meter":"credits","amount":1}]`)
	hold("d-back", `"items":[{"meter":"credits","amount":1}]`)
	s.send("/v1/holds/a-over/capture", "c1", `{"tenant":"acme","items":[{"meter":"calls","amount":4}]}`).want(200)
	s.send("/v1/holds/b-part/capture", "c2", `{"tenant":"acme","items":[{"meter":"jobs","amount":1}],"final":true}`).want(200)
	s.send("/v1/holds/d-back/release", "r1", `{"tenant":"acme"}`).want(200)
	for _, table := range []string{"holds", "hold_lines"} { // the hold has expired, and no request has noticed it yet
		_, err := s.pool.Exec(t.Context(), `UPDATE `+table+` SET expires_at = now() - interval '1 minute' WHERE hold_id = 'c-gone'`)
		require.NoError(t, err)
	}
	want := []client.Hold{
		{HoldID: "a-over", Subject: "u1", Status: "active", Items: []client.HoldPart{{Meter: "calls", Amount: 11, Captured: 4, Held: 7}, {Meter: "jobs", Amount: 2, Held: 2}}},
		{HoldID: "b-part", Status: "captured", Items: []client.HoldPart{{Meter: "jobs", Amount: 2, Captured: 1}}},
		{HoldID: "c-gone", Status: "expired", Items: []client.HoldPart{{Meter: "credits", Amount: 1}}},
		{HoldID: "d-back", Status: "released", Items: []client.HoldPart{{Meter: "credits", Amount: 1}}},
	}
	s.unmoved("reading", func() {
		got := pages[client.Hold](s, "/v1/tenants/acme/holds?", 3)
		for i := range got {
			assert.False(t, !got[i].ExpiresAt.After(got[i].CreatedAt) && got[i].HoldID != "c-gone", got[i])
			want[i].CreatedAt, want[i].ExpiresAt = got[i].CreatedAt, got[i].ExpiresAt
		}
		assert.Equal(t, want, got)
		for i, status := range []string{"active", "captured", "expired", "released"} {
			page := decoded[client.HoldList](s.call("GET", "/v1/tenants/acme/holds?status="+status, "").want(200))
			assert.Equal(t, want[i:i+1], page.Items, status)
		}
		one := decoded[client.Hold](s.call("GET", "/v1/tenants/acme/holds/a-over", "").want(200))
		assert.Equal(t, want[0], one)
		s.call("GET", "/v1/tenants/acme/holds/none", "").problem(404, "hold_not_found")
		s.call("GET", "/v1/tenants/nobody/holds", "").problem(404, "tenant_not_found")
		s.call("GET", "/v1/tenants/nobody/holds/a-over", "").problem(404, "tenant_not_found")
		s.call("GET", "/v1/tenants/acme/holds?status=lost", "").refused("status")
		s.call("GET", "/v1/tenants/acme/holds?limit=501", "").refused("limit")
		s.call("GET", "/v1/tenants/acme/holds?cursor=x", "").refused("cursor")
	})
}
