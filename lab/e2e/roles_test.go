package e2e

import (
	"context"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
)

// member creates a login role that is a member of the given role. That role is from roles.sql, and must exist. member
// returns the URL of the new role.
func member(t *testing.T, super, role string) string {
	t.Helper()
	u := urlOf(t, super)
	name := strings.ReplaceAll(strings.TrimPrefix(u.Path, "/"), "quotasvc_test_", role+"_")
	execSQL(t, super, "CREATE ROLE "+name+" LOGIN PASSWORD 'of-the-test'; GRANT "+role+" TO "+name+"; ALTER ROLE "+name+" SET role = '"+role+"'")
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		conn, err := pgx.Connect(ctx, super)
		if err != nil {
			t.Error(err)
			return
		}
		defer func() { _ = conn.Close(ctx) }()
		if _, err := conn.Exec(ctx, "DROP ROLE "+name); err != nil {
			t.Error(err)
		}
	})
	u.User = url.UserPassword(name, "of-the-test")
	return u.String()
}

// An operator installs with roles. An administrator creates the roles, the owner's role migrates, and the service's
// role serves. Then a month begins for which nobody has created a partition.
func TestRoles_InstalledAsDocumented_ServiceLivesWithoutDDL(t *testing.T) {
	t.Parallel()
	super := testenv.PostgresEmpty(t)
	must(t, []string{"QUOTASVC_DATABASE_URL=" + super}, "migrate", "roles")
	owner := []string{"QUOTASVC_DATABASE_URL=" + member(t, super, "quotasvc_owner")}
	env := using(member(t, super, "quotasvc_service"), testenv.RedisURL(t), "QUOTASVC_CLOCK_SKEW_MAX=8760h")
	fails(t, env, 1, "quotasvc migrate up", "serve") // there are no tables
	must(t, owner, migrateUpArgs()...)               // sets the rights, because the tables belong to quotasvc_owner
	moved := monthsAgo(t, super, 1)
	must(t, owner, "migrate", "partitions")

	in := serve(t, env).prepare(t)
	in.newOperations(t)
	in.everyOperation(t)
	in.stop()

	moved.Ahead("0")
	execSQL(t, super, `DO $$ DECLARE p record; BEGIN
		FOR p IN SELECT inhrelid::regclass::text AS name FROM pg_inherits WHERE inhparent = 'entries'::regclass LOOP
			IF p.name >= to_char(pg_catalog.clock_timestamp() AT TIME ZONE 'UTC', '"entries_"YYYY_MM') THEN EXECUTE 'DROP TABLE ' || p.name; END IF;
		END LOOP; END $$`)
	in = serve(t, env)
	in.logged("quotasvc migrate partitions", 1)
	got := in.do(t, http.StatusServiceUnavailable, "POST", "/v1/debits", "new", debitOf("monthly", "api_calls", 7))
	assert.Contains(t, string(got.body), "quotasvc migrate partitions", "without a partition: %s", got)
	fails(t, env, 1, "permission denied", "migrate", "partitions") // with the service's role
	must(t, owner, "migrate", "partitions")
	in.do(t, http.StatusOK, "POST", "/v1/debits", "new", debitOf("monthly", "api_calls", 7))
	b := in.balance(t, "monthly", "api_calls")
	assert.True(t, b.Remaining == 43 && b.Used == 7, "the new month: %+v", b)
	must(t, env, "roll")
	must(t, env, "verify", "--full")
	fails(t, env, 1, "", "seal", "--out", filepath.Join(t.TempDir(), "seal")) // with the service's role
	must(t, owner, "seal", "--out", filepath.Join(t.TempDir(), "seal"))
}

// prepare creates the tenants that everyOperation uses.
func (in *instance) prepare(t *testing.T) *instance {
	t.Helper()
	in.setUp(t, 1000)
	in.do(t, http.StatusCreated, "PUT", "/v1/plans/monthly", "", object{"allowances": []object{
		{"meter": "api_calls", "amount": 50, "every": "month", "anchor": "calendar"},
	}})
	in.do(t, http.StatusCreated, "PUT", "/v1/tenants/monthly", "", object{"plan": "monthly"})
	return in
}

// newOperations makes the operations that the previous version does not have.
func (in *instance) newOperations(t *testing.T) {
	t.Helper()
	grant := object{"meter": "api_calls", "amount": 9, "source": "topup", "grant_id": "late", "expires_at": "2090-01-01T00:00:00Z"}
	in.do(t, http.StatusCreated, "POST", "/v1/tenants/acme/grants", "late", grant)
	in.do(t, http.StatusOK, "POST", "/v1/tenants/acme/grants/late/extend", "later", object{"expires_at": "2095-01-01T00:00:00Z", "reason": "paid late"})
}

// everyOperation makes one operation of each kind that the previous version has as well, and waits until a roll and a
// verification have succeeded.
func (in *instance) everyOperation(t *testing.T) {
	t.Helper()
	in.do(t, http.StatusOK, "POST", "/v1/debits", "d", debitOf("acme", "api_calls", 3))
	in.do(t, http.StatusOK, "POST", "/v1/debits", "old", debitOf("monthly", "api_calls", 20))
	in.do(t, http.StatusOK, "POST", "/v1/debits/batch", "", object{"debits": []object{
		{"idempotency_key": "b1", "tenant": "acme", "items": []object{{"meter": "api_calls", "amount": 1}}},
	}})
	in.do(t, http.StatusOK, "POST", "/v1/consume", "c", debitOf("acme", "api_calls", 1))
	in.do(t, http.StatusOK, "POST", "/v1/check", "", debitOf("acme", "api_calls", 1))
	in.do(t, http.StatusOK, "POST", "/v1/refunds", "r", object{"tenant": "acme", "operation_id": "d", "amount": 2})
	for _, id := range []string{"h1", "h2"} {
		in.do(t, http.StatusCreated, "POST", "/v1/holds", id, object{"tenant": "acme", "hold_id": id, "items": []object{{"meter": "api_calls", "amount": 5}}})
	}
	in.do(t, http.StatusOK, "POST", "/v1/holds/h1/extend", "x", object{"tenant": "acme", "ttl_seconds": 60})
	in.do(t, http.StatusOK, "POST", "/v1/holds/h1/capture", "y", object{"tenant": "acme"})
	in.do(t, http.StatusOK, "POST", "/v1/holds/h2/release", "z", object{"tenant": "acme"})
	grant := object{"meter": "api_calls", "amount": 9, "source": "topup", "grant_id": "g1", "reason": "order"}
	in.do(t, http.StatusCreated, "POST", "/v1/tenants/acme/grants", "g", grant)
	in.do(t, http.StatusOK, "POST", "/v1/tenants/acme/grants/g1/void", "v", object{"reason": "mistake"})
	in.do(t, http.StatusOK, "POST", "/v1/tenants/acme/adjustments", "a", object{"meter": "api_calls", "amount": -1, "reason": "goodwill"})
	in.do(t, http.StatusOK, "PATCH", "/v1/tenants/acme", "", object{"plan": "monthly", "apply": "now"})
	in.do(t, http.StatusCreated, "PUT", "/v1/limits/search", "", object{"per": []string{"tenant"}, "kind": "token_bucket", "rate": "60/s"})
	in.do(t, http.StatusNoContent, "DELETE", "/v1/limits/search", "", nil)
	in.do(t, http.StatusCreated, "PUT", "/v1/blocks/tenant/other", "", object{"action": "block"})
	in.do(t, http.StatusNoContent, "DELETE", "/v1/blocks/tenant/other", "", nil)
	in.do(t, http.StatusCreated, "PUT", "/v1/meters/unused", "", object{"unit": "u"})
	in.do(t, http.StatusNoContent, "DELETE", "/v1/meters/unused", "", nil)
	for path, done := range map[string]string{"/v1/rolls": "done", "/v1/verifications": "clean"} {
		in.ends(t, path, done)
	}
	for _, path := range []string{"balances", "entries", "operations/d", "grants", "holds", "terms", "periods?meter=api_calls", "statements?meter=api_calls"} {
		in.do(t, http.StatusOK, "GET", "/v1/tenants/acme/"+path, "", nil)
	}
}

// ends starts a job and waits until it has the given status.
func (in *instance) ends(t *testing.T, path, status string) {
	t.Helper()
	started := in.do(t, http.StatusAccepted, "POST", path, "", object{})
	where := started.header.Get("Location")
	var job struct{ Status, Error string }
	testenv.Eventually(t, func() bool {
		in.do(t, http.StatusOK, "GET", where, "", nil).into(t, &job)
		return job.Status != "running"
	}, path, " ends")
	require.True(t, job.Status == status, "%s: %+v, want %s", path, job, status)
}
