package httpapi

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
)

// shared is a kind of object of which the keys of one tenant have a share.
type shared struct {
	kind, table    string
	most           int    // what the keys of a tenant may create
	kept           int    // from so many objects of all tenants on, only keys without a tenant create more; 0: no bound
	create, delete string // method, path and body of requests; each * is a number
	row            string // SQL of columns and values of the n-th row about the tenant $2
	id             string // SQL of the n-th row's id in the audit log
}

var sharedKinds = []shared{
	{
		kind: "webhook", table: "webhooks", most: 50, kept: 450,
		create: `POST /v1/webhooks {"url":"http://127.0.0.1:1/","types":["plan.changed"],"tenant":"acme"}`,
		delete: "DELETE /v1/webhooks/w1",
		row: "(webhook_id, url, types, tenant_id, status) " +
			"SELECT 'w' || n, 'http://127.0.0.1:1/', ARRAY['plan.changed'], $2, 'paused'",
		id: "'w' || n",
	}, {
		kind: "key", table: "keys", most: 500, kept: 18_000,
		create: `POST /v1/keys {"name":"n","scopes":["use"],"tenant":"acme"}`,
		delete: "DELETE /v1/keys/k1",
		row:    "(key_id, name, scopes, tenant_id) SELECT 'k' || n, 'n', ARRAY['use'], $2",
		id:     "'k' || n",
	}, {
		kind: "block", table: "blocks", most: 1000, kept: 45_000,
		create: `PUT /v1/blocks/subject/new* {"tenant":"acme"}`,
		delete: "DELETE /v1/blocks/subject/s1?tenant=acme",
		row:    "(kind, tenant_id, value, action) SELECT 'subject', $2, 's' || n, 'block'",
		id:     "'subject acme/s' || n",
	}, {
		kind: "override", table: "limit_overrides", most: 1000,
		create: `PUT /v1/limits/by-subject/overrides/acme/new* {"rate":"6/s"}`,
		delete: "DELETE /v1/limits/by-subject/overrides/acme/s1",
		row:    "(rule, tenant_id, subject, rate) SELECT 'by-subject', $2, 's' || n, '6/s'",
		id:     "'by-subject'",
	}, {
		kind: "portal_session", table: "portal_sessions", most: 200,
		create: `POST /v1/portal-sessions {"tenant":"acme"}`,
		row: "(session_id, secret_hash, tenant_id, expires_at) " +
			"SELECT 'p' || n, sha256('x'), $2, clock_timestamp() + interval '1 day'",
		id: "'p' || n",
	},
}

// The keys of a tenant create as many objects as their share has, and never the last tenth of all. What others create
// about the tenant does not count, and operators create more.
func TestShares_OfAKeysTenant(t *testing.T) {
	t.Parallel()
	for _, kind := range sharedKinds {
		t.Run(kind.kind, func(t *testing.T) {
			t.Parallel()
			s := newService(t)
			s.catalogue()
			limit := `{"per":["subject"],"kind":"token_bucket","rate":"60000/s"}`
			s.call("PUT", "/v1/limits/by-subject", limit).want(201)
			bound := s.newKey(`{"name":"n","scopes":["admin"],"tenant":"acme"}`)
			n := 0
			send := func(request string, extra ...string) *answer {
				n++
				parts := strings.SplitN(strings.ReplaceAll(request, "*", fmt.Sprint(n)), " ", 3)
				return s.call(parts[0], parts[1], strings.Join(parts[2:], ""), extra...)
			}
			asTenant := []string{"Authorization", "Bearer " + bound.Secret}
			fill := "INSERT INTO " + kind.table + " " + kind.row + " FROM generate_series(1, $1::int) n"
			if kind.kept > 0 {
				testenv.Exec(t, s.pool, fill, kind.kept, "globex")
				p := send(kind.create, asTenant...).problem(409, "too_many")
				assert.Contains(t, p.Detail, fmt.Sprint(kind.kept), "the number")
				send(kind.create).want(201)
				testenv.Exec(t, s.pool, "DELETE FROM "+kind.table+" WHERE tenant_id = $1", "globex")
			}
			testenv.Exec(t, s.pool, fill, kind.most-1, "acme") // no line of the audit log names the tenant's key
			send(kind.create, asTenant...).want(201)
			// Now lines say so of all but one of them, in the form of the line that the request has just made.
			lines := `INSERT INTO audit
				(actor_key, actor_name, action, object_kind, object_id, tenant_id, before, after)
				SELECT actor_key, actor_name, action, object_kind, ` + kind.id + `, tenant_id, before,
				    after || jsonb_build_object('subject', CASE WHEN $3 = 'override' THEN 's' || n ELSE '' END)
				FROM audit, generate_series(1, $1::int) n WHERE actor_key = $2 AND object_kind = $3`
			testenv.Exec(t, s.pool, lines, kind.most-2, bound.KeyID, kind.kind)
			send(kind.create, asTenant...).want(201)
			p := send(kind.create, asTenant...).problem(409, "too_many")
			assert.Contains(t, p.Detail, fmt.Sprint(kind.most), "the number")
			send(kind.create).want(201)
			if kind.delete != "" {
				send(kind.delete, asTenant...).want(204)
				send(kind.create, asTenant...).want(201)
				send(kind.create, asTenant...).problem(409, "too_many")
			}
		})
	}
}
