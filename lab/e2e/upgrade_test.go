package e2e

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/lab/localstack"
	"github.com/quotasvc/quotasvc/internal/lab/testenv"
)

const (
	upgrades = "testdata/upgrade"

	// envSnapshot is the environment variable that makes TestUpgrade_Snapshot_IsWritten write a snapshot. See
	// testdata/upgrade/README.md.
	envSnapshot = "QUOTASVC_UPGRADE_SNAPSHOT"
	// envProgram is the environment variable with the path of the previous version's program. `make test-upgrade` sets
	// it.
	envProgram = "QUOTASVC_UPGRADE_PROGRAM"
)

// previousProgram returns the path of the program of the previous version.
func previousProgram(t *testing.T) string {
	t.Helper()
	path := os.Getenv(envProgram)
	if path == "" {
		t.Skip("NOT TESTED here: the program of the version before. Run make test-upgrade, which builds it")
	}
	return path
}

// restore loads a dump into the database at url.
func restore(t *testing.T, url, file string) {
	t.Helper()
	text := testenv.Must(t).Get(os.ReadFile(file))
	execSQL(t, url, string(text))
}

// snapshots returns the paths of the dumps, the oldest first.
func snapshots(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(upgrades, "*.sql"))
	require.True(t, err == nil && len(files) != 0, "no snapshots: %v", err)
	return files
}

func serviceEnv(t *testing.T, databaseURL string) []string {
	t.Helper()
	return using(databaseURL, testenv.RedisURL(t), "QUOTASVC_CLOCK_SKEW_MAX=87600h", "QUOTASVC_LOG_LEVEL=warn")
}

// An operator starts a new version on a database of an earlier version. The new version refuses to start and names
// the next step. The migration changes no amount, and after it the service works.
func TestUpgrade_SchemaOfEarlierVersion_RefusedThenMigratedWithItsData(t *testing.T) {
	t.Parallel()
	for _, file := range snapshots(t) {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			super := testenv.PostgresEmpty(t)
			restore(t, super, file)
			admin, env := []string{"QUOTASVC_DATABASE_URL=" + super}, serviceEnv(t, testenv.AsService(testenv.Postgres(t)))
			env[0] = "QUOTASVC_DATABASE_URL=" + super
			fails(t, env, 1, "quotasvc migrate up", "serve") // the schema is older
			must(t, admin, migrateUpArgs()...)
			execSQL(t, super, "DO $$ BEGIN ASSERT (SELECT unsigned_until FROM signing_keys) > now() + interval '23 hours'; END $$")
			must(t, admin, "migrate", "roles") // the earlier installation had only one role
			env[0] = "QUOTASVC_DATABASE_URL=" + testenv.AsService(super)
			must(t, env, "verify", "--full")
			in := serve(t, env).sameAsInSnapshot(t)
			in.prepare(t)
			in.everyOperation(t)
			in.newOperations(t)
			must(t, env, "verify", "--full")
		})
	}
}

// During a rolling upgrade both versions serve one database. The old version continues to work, and each version
// knows the operations of the other.
func TestUpgrade_OldAndNewProgram_ShareTheNewSchema(t *testing.T) {
	t.Parallel()
	program := previousProgram(t)
	super := testenv.Postgres(t)
	env := serviceEnv(t, testenv.AsService(super))
	execSQL(t, super, "UPDATE signing_keys SET unsigned_until = now() + interval '1 day'") // as if tenants existed
	old, in := serveBy(t, program, env), serve(t, env)
	old.prepare(t)
	old.everyOperation(t)
	for i, pair := range [][2]*instance{{old, in}, {in, old}} {
		first, second := pair[0], pair[1]
		key := fmt.Sprintf("both-%d", i)
		done := first.do(t, http.StatusOK, "POST", "/v1/debits", key, debitOf("monthly", "api_calls", 2))
		again := second.do(t, http.StatusOK, "POST", "/v1/debits", key, debitOf("monthly", "api_calls", 2))
		assert.True(t, again.header.Get("Idempotent-Replayed") == "true" && string(again.body) == string(done.body),
			"the other version answers %s, want a replay of %s", again, done)
		second.do(t, http.StatusOK, "POST", "/v1/refunds", "refund-"+key, object{"tenant": "monthly", "operation_id": key, "amount": 1})
		a, b := first.balance(t, "monthly", "api_calls"), second.balance(t, "monthly", "api_calls")
		assert.True(t, a.Remaining == b.Remaining && a.Used == b.Used, "balances differ: %+v, %+v", a, b)
	}
	limitOfSlots(t, old, in)
	lease := old.acquire(t)
	assert.Equal(t, lease, in.renew(t, lease), "the new version renews the lease")
	in.do(t, http.StatusNoContent, "DELETE", "/v1/leases/"+lease, "", nil)
	old.do(t, http.StatusNotFound, "POST", "/v1/leases/"+lease+"/renew", "", object{})
	must(t, env, "verify", "--full")
}

// A plan changes at once while both versions run. The old version ends periods at such a change. It must not end the
// period that the new version has amended: the use would count against the wrong allowance.
func TestUpgrade_PlanChangesWhileBothRun_PeriodGoesOn(t *testing.T) {
	t.Parallel()
	program := previousProgram(t)
	super := testenv.Postgres(t)
	env := serviceEnv(t, testenv.AsService(super))
	execSQL(t, super, "UPDATE signing_keys SET unsigned_until = now() + interval '1 day'") // as if tenants existed
	execSQL(t, super, "UPDATE chain_start SET terms_at = now() + interval '1 day'")
	old, in := serveBy(t, program, env), serve(t, env)
	old.do(t, http.StatusCreated, "PUT", "/v1/meters/calls", "", object{"unit": "call"})
	for plan, amount := range map[string]int{"small": 100, "large": 500} {
		old.do(t, http.StatusCreated, "PUT", "/v1/plans/"+plan, "", object{"allowances": []object{{"meter": "calls", "amount": amount, "every": "year", "anchor": "calendar"}}})
	}
	old.do(t, http.StatusCreated, "PUT", "/v1/tenants/both", "", object{"plan": "small"})
	used := int64(0)
	debit := func(by *instance, key string, amount int64) {
		used += amount
		by.do(t, http.StatusOK, "POST", "/v1/debits", key, debitOf("both", "calls", amount))
	}
	same := func(allowance int64) {
		t.Helper()
		for name, by := range map[string]*instance{"old": old, "new": in} {
			b := by.balance(t, "both", "calls")
			assert.True(t, b.Remaining == max(0, allowance-used) && b.Used == used, "%s: %d of %d are used: %+v", name, used, allowance, b)
		}
	}
	change := func(plan string) {
		in.do(t, http.StatusOK, "PATCH", "/v1/tenants/both", "", object{"plan": plan, "apply": "now"})
	}
	debit(old, "a", 30)
	same(100)
	change("large")
	debit(in, "b", 1)
	debit(old, "c", 20)
	debit(in, "d", 150)
	debit(old, "e", 20)
	same(500)
	change("small")
	for i, by := range []*instance{in, old} { // the old version does not know the change until the new one has written it
		by.do(t, http.StatusTooManyRequests, "POST", "/v1/debits", fmt.Sprint("refused-", i), debitOf("both", "calls", 1))
	}
	same(100)
	in.do(t, http.StatusOK, "PUT", "/v1/plans/small", "", object{
		"allowances": []object{{"meter": "calls", "amount": 400, "every": "year", "anchor": "calendar"}}, "apply": "now",
	})
	debit(in, "f", 5)
	debit(old, "g", 5)
	same(400)
	must(t, env, "verify", "--full") // the chains of terms and plans have begun
	old.do(t, http.StatusOK, "PATCH", "/v1/tenants/both", "", object{"overrides": object{"calls": 410}})
	old.do(t, http.StatusOK, "PUT", "/v1/plans/large", "", object{
		"allowances": []object{{"meter": "calls", "amount": 600, "every": "year", "anchor": "calendar"}},
	})
	must(t, env, "verify", "--full") // it adds what the old version wrote without a chain
	change("large")
	must(t, env, "verify", "--full")
}

// A clone without tags upgrades from the commit in the file `previous`, which the first commit after a release renews.
func TestUpgrade_Previous_IsTheNewestRelease(t *testing.T) {
	t.Parallel()
	previousProgram(t) // make test-upgrade runs it: its clone has the history
	out := testenv.Must(t).Get(exec.CommandContext(t.Context(), "../../scripts/build-previous.sh", "--commit").Output())
	file := testenv.Must(t).Get(os.ReadFile(filepath.Join(upgrades, "previous")))
	assert.Equal(t, strings.TrimSpace(string(file)), strings.TrimSpace(string(out)), "the newest release's commit: run make upgrade-snapshot, and commit it")
}

// fillForSnapshot creates the data that sameAsInSnapshot expects. If now is false, it creates the operations of two
// months ago, otherwise the operations of today.
func (in *instance) fillForSnapshot(t *testing.T, now bool) {
	t.Helper()
	if !now {
		for _, meter := range []string{"credits", "hourly"} {
			in.do(t, http.StatusCreated, "PUT", "/v1/meters/"+meter, "", object{"unit": "credit"})
		}
		in.do(t, http.StatusCreated, "PUT", "/v1/plans/kept", "", object{"allowances": []object{
			{"meter": "credits", "amount": 0, "every": "once", "anchor": "tenant"},
			{"meter": "hourly", "amount": 10, "every": "hour", "anchor": "calendar"},
		}})
		in.do(t, http.StatusCreated, "PUT", "/v1/tenants/kept", "", object{"plan": "kept"})
		in.do(t, http.StatusCreated, "POST", "/v1/tenants/kept/grants", "paid", object{"meter": "credits", "amount": 100, "source": "topup", "grant_id": "paid"})
		in.do(t, http.StatusOK, "POST", "/v1/debits", "old", debitOf("kept", "credits", 20))
		in.do(t, http.StatusOK, "POST", "/v1/debits", "hourly", debitOf("kept", "hourly", 4))
		return
	}
	in.do(t, http.StatusOK, "POST", "/v1/debits", "new", debitOf("kept", "credits", 15))
	in.do(t, http.StatusOK, "POST", "/v1/refunds", "refund", object{"tenant": "kept", "operation_id": "new", "amount": 5})
	in.do(t, http.StatusCreated, "POST", "/v1/holds", "hold", object{"tenant": "kept", "hold_id": "hold", "items": []object{{"meter": "credits", "amount": 7}}})
	in.do(t, http.StatusOK, "POST", "/v1/holds/hold/capture", "capture", object{"tenant": "kept"})
}

// sameAsInSnapshot fails the test unless the amounts are the same as when the snapshot was written. The age of the
// snapshot does not matter.
func (in *instance) sameAsInSnapshot(t *testing.T) *instance {
	t.Helper()
	b := in.balance(t, "kept", "credits")
	assert.True(t, b.Granted == 100 && b.Remaining == 63, "credits: %+v", b)
	b = in.balance(t, "kept", "hourly")
	assert.True(t, b.Remaining == 10 && b.Used == 0, "a new hour: %+v", b)
	list := in.do(t, http.StatusOK, "GET", "/v1/tenants/kept/entries?meter=credits", "", nil)
	assert.Len(t, decoded[struct{ Items []object }](t, list).Items, 6, "entries of credits")
	in.do(t, http.StatusOK, "GET", "/v1/tenants/kept/operations/new", "", nil)
	in.do(t, http.StatusOK, "POST", "/v1/debits", "after", debitOf("kept", "credits", 63))
	in.do(t, http.StatusPaymentRequired, "POST", "/v1/debits", "beyond", debitOf("kept", "credits", 1))
	return in
}

// `make upgrade-snapshot` runs this test. The previous version creates a database and fills it. The test dumps the
// database.
func TestUpgrade_Snapshot_IsWritten(t *testing.T) {
	if os.Getenv(envSnapshot) == "" {
		t.Skip("runs in make upgrade-snapshot")
	}
	program, super := previousProgram(t), testenv.PostgresEmpty(t)
	env := serviceEnv(t, super)
	migrate := exec.CommandContext(t.Context(), program, "migrate", "up")
	migrate.Env = append(withoutSettings(os.Environ()), env...)
	out, err := migrate.CombinedOutput()
	require.NoError(t, err, "migrate: %v\n%s", err, out)
	moved := monthsAgo(t, super, 2)
	in := serveBy(t, program, env)
	in.fillForSnapshot(t, false)
	in.stop()
	moved.Ahead("0")
	in = serveBy(t, program, env)
	in.fillForSnapshot(t, true)
	in.stop()
	moved.Remove()
	var step int
	latest := testenv.Connect(t, super).QueryRow(t.Context(), "SELECT max(version_id) FROM goose_db_version")
	require.NoError(t, latest.Scan(&step))
	require.NoError(t, os.WriteFile(filepath.Join(upgrades, fmt.Sprintf("%05d.sql", step)), dump(t, super), 0o644))
}

// dump returns the contents of a database as statements that any client can execute.
func dump(t *testing.T, url string) []byte {
	t.Helper()
	bin := testenv.Must(t).Get(localstack.SystemSearch().Postgres(context.WithoutCancel(t.Context()), 0))
	out, err := exec.CommandContext(t.Context(), filepath.Join(bin.Dir, "pg_dump"), "--inserts", "--no-owner", "--no-privileges", "--dbname", url).Output()
	require.NoError(t, err)
	var kept []string
	for line := range strings.Lines(string(out)) {
		if !strings.HasPrefix(line, `\`) { // a command of psql, which other clients cannot execute
			kept = append(kept, line)
		}
	}
	return []byte(strings.Join(kept, ""))
}
