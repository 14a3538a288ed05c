package e2e

import (
	"encoding/json"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
)

func TestServe_InvalidConfiguration_ListsAllProblems(t *testing.T) {
	t.Parallel()
	status, _, stderr := tool(t, []string{
		"QUOTASVC_DATABASE_URL=postgres://u:hunter2@h:port/db", "QUOTASVC_REDIS_URL=http://:hunter2@h", "QUOTASVC_ADMIN_KEY=short",
		"QUOTASVC_LISTEN=nowhere", "QUOTASVC_STOP_TIMEOUT=1ms", "QUOTASVC_LEDGER_LANES=65", "QUOTASVC_TENANTS_IN_MEMORY=999", "QUOTASVC_REPLICAS=0", "QUOTASVC_REJECTIONS_HIGH=-1",
		"QUOTASVC_LEGACY_HEADERS=x-ratelimit-epoch,x-ratelimit-delta",
		"QUOTASVC_TRUSTED_PROXIES=10.0.0.0/8,10.0.0.0/40",
	}, "serve")
	assert.Equal(t, exitUsage, status)
	for _, name := range []string{"DATABASE_URL", "REDIS_URL", "ADMIN_KEY", "LISTEN", "STOP_TIMEOUT", "LEDGER_LANES", "TENANTS_IN_MEMORY", "REPLICAS", "REJECTIONS_HIGH", "LEGACY_HEADERS", "TRUSTED_PROXIES"} {
		assert.Contains(t, stderr, "(QUOTASVC_"+name+")", "the error does not name %s", name)
	}
	assert.NotContains(t, stderr, "hunter2", "a password is printed")
	if t.Failed() {
		t.Log(stderr)
	}
}

func TestServe_EmptyVariable_CountsAsUnset(t *testing.T) {
	t.Parallel()
	status, _, stderr := tool(t, []string{
		"QUOTASVC_DATABASE_URL=postgres://h/db", "QUOTASVC_ADMIN_KEY=" + testKey,
		"QUOTASVC_REDIS_URL=", "QUOTASVC_DRAIN_DELAY=", "QUOTASVC_LISTEN=", "QUOTASVC_LOG_LEVEL=",
		"QUOTASVC_LEGACY_HEADERS=",
	}, "serve", "--validate")
	assert.Zero(t, status, "ended with %d: %s", status, stderr)
}

func TestServe_TrustedProxies_OnlyNamedOnes(t *testing.T) {
	t.Parallel()
	for list, ok := range map[string]bool{
		"":          true,
		"127.0.0.1": true, "::1": true, "10.0.0.0/8": true, "fd00::/8": true, "10.0.0.0/8, 192.0.2.7": true,
		"0.0.0.0/0": false, "::/0": false, "::ffff:10.0.0.0/104": false, "localhost": false, "10.0.0.0/33": false, "10.0.0.0/8;::1": false, "fe80::1%eth0": false,
	} {
		status, _, stderr := tool(t, []string{
			"QUOTASVC_DATABASE_URL=postgres://h/db", "QUOTASVC_ADMIN_KEY=" + testKey, "QUOTASVC_TRUSTED_PROXIES=" + list,
		}, "serve", "--validate")
		assert.True(t, (status == 0) == ok && (ok || strings.Contains(stderr, "--trusted-proxies")),
			"%q: ended with %d: %s", list, status, stderr)
	}
}

// A misspelt variable is named, and not its value, which may be secret. Variables of other commands, and those that
// Kubernetes sets for a Service, are no mistakes.
func TestServe_UnknownVariables_Named(t *testing.T) {
	t.Parallel()
	env := append(backends(t), "QUOTASVC_TRUSTED_PROXYS=10.9.8.7/32", "QUOTASVC_ADMIN_KEYFILE=/hunter2", "QUOTASVC_ROLL_EVERY=1h", "QUOTASVC_URL=http://h",
		"QUOTASVC_SERVICE_HOST=10.0.0.1", "QUOTASVC_PORT=tcp://10.0.0.1:80", "QUOTASVC_PORT_80_TCP_ADDR=10.0.0.1", "QUOTASVC_OPS_SERVICE_PORT_HTTP=80", "QUOTASVC_NOTHING=")
	in := serve(t, env)
	in.stop()
	status, _, validated := tool(t, env, "serve", "--validate")
	assert.Zero(t, status, "status of --validate")
	for what, log := range map[string]string{"serve": in.stderr.String(), "--validate": validated} {
		assert.Contains(t, log, `"variables":["QUOTASVC_ADMIN_KEYFILE","QUOTASVC_TRUSTED_PROXYS"]`, what)
		assert.NotContains(t, log, "hunter2", what)
		assert.NotContains(t, log, "10.9.8.7", what)
	}
	_, _, validated = tool(t, env[:3], "serve", "--validate")
	assert.NotContains(t, validated, "variables", "without unknown variables")
}

// --validate finds what serve would end with, and warns of what serve would warn of.
func TestServe_Validate_ReadsCertificates(t *testing.T) {
	t.Parallel()
	authority, dir := testenv.NewAuthority(t), t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	authority.Issue(t, file("cert"), file("key"))
	authority.Issue(t, file("other"), file("key-of-other"))
	authority.IssueFor(t, file("ended"), file("key-of-ended"), time.Now().Add(-time.Hour), time.Now().Add(-time.Minute))
	for _, c := range []struct {
		cert, key, ca string
		status        int
		says          string
	}{
		{"cert", "key", "", 0, ""},
		{"cert", "key", "cert", 0, ""},
		{"none", "key", "", exitUsage, "no such file"},
		{"cert", "key-of-other", "", exitUsage, "private key does not match"},
		{"cert", "key", "key", exitUsage, "has no certificate"},
		{"ended", "key-of-ended", "", 0, "has ended"},
	} {
		env := []string{"QUOTASVC_DATABASE_URL=postgres://h/db", "QUOTASVC_ADMIN_KEY=" + testKey, "QUOTASVC_TLS_CERT_FILE=" + file(c.cert), "QUOTASVC_TLS_KEY_FILE=" + file(c.key)}
		if c.ca != "" {
			env = append(env, "QUOTASVC_TLS_CLIENT_CA_FILE="+file(c.ca))
		}
		status, _, stderr := tool(t, env, "serve", "--validate")
		assert.True(t, status == c.status && strings.Contains(stderr, c.says) && (c.status == 0 || strings.Contains(stderr, "--tls-cert-file")),
			"%+v: ended with %d: %s", c, status, stderr)
	}
}

// Without QUOTASVC_PORTAL_URL, links to a tenant's page begin with what the request names as its host.
func TestServe_PortalURLMissing_WarnsUnlessLoopback(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		listen, portal string
		warns          bool
	}{
		{"127.0.0.1:8080", "", false},
		{"[::1]:8080", "", false},
		{"localhost:8080", "", false},
		{":8080", "", true},
		{"0.0.0.0:8080", "", true},
		{"10.0.0.1:8080", "", true},
		{":8080", "https://quota.example.com", false},
	} {
		status, _, stderr := tool(t, []string{
			"QUOTASVC_DATABASE_URL=postgres://127.0.0.1/db", "QUOTASVC_ADMIN_KEY=" + testKey,
			"QUOTASVC_LISTEN=" + c.listen, "QUOTASVC_PORTAL_URL=" + c.portal,
		}, "serve", "--validate")
		assert.True(t, status == 0 && strings.Contains(stderr, "QUOTASVC_PORTAL_URL") == c.warns, "%+v: ended with %d: %s", c, status, stderr)
	}
}

// A monthly job that meets the nightly dump makes the coming partitions. It cannot drop the old ones, and says what to
// do.
func TestMigratePartitions_BesideADump_GoesOn(t *testing.T) {
	testenv.NotOnCitus(t, "a dump is taken of one server")
	t.Parallel()
	url := testenv.Postgres(t)
	env := []string{"QUOTASVC_DATABASE_URL=" + url}
	execSQL(t, url, `CREATE TABLE events_2020_01 (LIKE events INCLUDING ALL); CREATE TABLE denial_counts_2020_01_06 (LIKE denial_counts INCLUDING ALL);
		ALTER TABLE events ATTACH PARTITION events_2020_01 FOR VALUES FROM ('2020-01-01') TO ('2020-02-01');
		ALTER TABLE denial_counts ATTACH PARTITION denial_counts_2020_01_06 FOR VALUES FROM ('2020-01-06') TO ('2020-01-13')`)
	newest := func(table string) string {
		var name string
		row := testenv.Connect(t, url).QueryRow(t.Context(), "SELECT max(inhrelid::regclass::text) FROM pg_inherits WHERE inhparent = $1::text::regclass", table)
		require.NoError(t, row.Scan(&name))
		return name
	}
	var lacked []string
	for _, table := range []string{"webhook_deliveries", "denial_counts", "shadow_counts"} {
		lacked = append(lacked, newest(table))
		execSQL(t, url, "DROP TABLE "+newest(table))
	}
	dump := testenv.Connect(t, url)
	testenv.Exec(t, dump, "BEGIN")
	for _, table := range []string{"entries", "events", "webhook_deliveries", "denial_counts", "shadow_counts"} {
		testenv.Exec(t, dump, "LOCK TABLE "+table+" IN ACCESS SHARE MODE")
	}
	status, _, stderr := tool(t, env, "migrate", "partitions")
	assert.Equal(t, 1, status, "status beside a dump: %s", stderr)
	for _, says := range []string{"events_2020_01", "denial_counts_2020_01_06", "dump", "Run `quotasvc migrate partitions` again"} {
		assert.Contains(t, stderr, says)
	}
	assert.Equal(t, lacked, []string{newest("webhook_deliveries"), newest("denial_counts"), newest("shadow_counts")}, "partitions that lacked")
	testenv.Exec(t, dump, "ROLLBACK")
	must(t, env, "migrate", "partitions")
	execSQL(t, url, "DO $$ BEGIN ASSERT to_regclass('events_2020_01') IS NULL AND to_regclass('denial_counts_2020_01_06') IS NULL; END $$")
}

func TestHelp_EveryFlag_NamesItsVariable(t *testing.T) {
	t.Parallel()
	for _, command := range []string{"serve", "dev"} {
		stdout := must(t, nil, command, "--help")
		for _, line := range strings.Split(stdout, "\n") {
			flag := strings.TrimSpace(line)
			if !strings.HasPrefix(flag, "--") || strings.HasPrefix(flag, "--validate") {
				continue
			}
			// The help text of a flag may continue on the following lines.
			_, rest, _ := strings.Cut(stdout, line)
			entry, _, _ := strings.Cut(rest, "\n  --")
			assert.Contains(t, line+entry, "$QUOTASVC_", "%s %s has no variable", command, flag)
		}
	}
}

func TestServe_SchemaBehind_Refused(t *testing.T) {
	t.Parallel()
	env := []string{"QUOTASVC_DATABASE_URL=" + testenv.PostgresEmpty(t), "QUOTASVC_ADMIN_KEY=" + testKey}
	status, _, stderr := tool(t, env, serveFree...)
	assert.True(t, status != 0 && strings.Contains(stderr, "quotasvc migrate up"),
		"ended with %d, and does not say what to do:\n%s", status, stderr)
	if testenv.OnCitus() { // serve --migrate applies the schema, and distributes no table
		must(t, env, migrateUpArgs()...)
	}
	in := launch(t, env, "serve", "--migrate", "--listen", "127.0.0.1:0", "--ops-listen", "127.0.0.1:0")
	in.line("API ")
	in.stop()
}

func TestMigrate_UpStatusDown_RoundTrip(t *testing.T) {
	t.Parallel()
	env := []string{"QUOTASVC_DATABASE_URL=" + testenv.PostgresEmpty(t)}
	status, _, _ := tool(t, env, "migrate", "status")
	assert.Equal(t, 1, status, "status of an empty database")
	must(t, env, "migrate", "up")
	must(t, env, "migrate", "up") // the second run has nothing to do
	applied := must(t, env, "migrate", "status")
	assert.True(t, !strings.Contains(applied, "missing") && strings.Contains(applied, "00001_"),
		"status after up:\n%s", applied)
	steps := strings.Count(applied, "\n")
	for range steps {
		must(t, env, "migrate", "down")
	}
	status, _, stderr := tool(t, env, "migrate", "down")
	assert.True(t, status != 0 && strings.Contains(stderr, "nothing to undo"),
		"one down too many ended with %d: %s", status, stderr)
	must(t, env, "migrate", "up")
}

func TestServe_PortTaken_ReportedFirst(t *testing.T) {
	t.Parallel()
	taken := testenv.Must(t).Get(net.Listen("tcp", "127.0.0.1:0"))
	defer taken.Close()
	status, _, stderr := tool(t, []string{
		"QUOTASVC_DATABASE_URL=postgres://nobody@127.0.0.1:1/none", "QUOTASVC_ADMIN_KEY=" + testKey,
	}, "serve", "--listen", taken.Addr().String(), "--ops-listen", "127.0.0.1:0")
	assert.True(t, status == 1 && strings.Contains(stderr, taken.Addr().String()) &&
		strings.Contains(stderr, "--listen"), "ended with %d: %s", status, stderr)
}

func TestServe_NoPostgres_ErrorHidesPassword(t *testing.T) {
	t.Parallel()
	status, _, stderr := tool(t, []string{
		"QUOTASVC_DATABASE_URL=postgres://nobody:hunter2@127.0.0.1:1/none", "QUOTASVC_ADMIN_KEY=" + testKey, "QUOTASVC_START_TIMEOUT=1s",
	}, serveFree...)
	assert.True(t, status == 1 && strings.Contains(stderr, "127.0.0.1") && !strings.Contains(stderr, "hunter2"),
		"ended with %d: %s", status, stderr)
}

func TestHealth_Readiness_SetsExitStatus(t *testing.T) {
	t.Parallel()
	in := serve(t, backends(t))
	ops := strings.TrimPrefix(in.ops, "http://")
	must(t, []string{"QUOTASVC_OPS_LISTEN=" + ops}, "health")
	must(t, nil, "health", "--url", in.ops+"/livez")
	in.stop()
	fails(t, []string{"QUOTASVC_OPS_LISTEN=" + ops}, 1, "health", "health")
}

func TestServe_Signals_FirstDrainsSecondEnds(t *testing.T) {
	t.Parallel()
	in := serve(t, append(backends(t), "QUOTASVC_DRAIN_DELAY=1m", "QUOTASVC_LOG_LEVEL=info")).setUp(t, 10)
	in.signal(syscall.SIGTERM)
	in.logged("stopping", 1)
	testenv.Eventually(t, func() bool { return in.ask(t, "/readyz").status != http.StatusOK }, "not ready")
	in.do(t, http.StatusOK, "POST", "/v1/debits", "while-draining", debitOf("acme", "api_calls", 1))
	in.signal(syscall.SIGTERM)
	assert.Equal(t, exitInterrupted, in.wait(), "after a second signal")
}

func TestServe_NoRedis_StartsAndDebits(t *testing.T) {
	t.Parallel()
	for name, redis := range map[string]string{"not configured": "", "down": "redis://127.0.0.1:1"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := serve(t, using(testenv.PostgresService(t), redis)).setUp(t, 10)
			got := in.do(t, http.StatusOK, "POST", "/v1/debits", "one", debitOf("acme", "api_calls", 3))
			assert.EqualValues(t, "7", got.header.Get("X-Quota-Remaining"), "remaining")
			in.do(t, http.StatusOK, "POST", "/v1/check", "", debitOf("acme", "api_calls", 3))
			in.stop()
		})
	}
}

func TestApply_DryRun_ShowsChangesMakesNone(t *testing.T) {
	t.Parallel()
	env := []string{"QUOTASVC_DATABASE_URL=" + testenv.PostgresService(t)}
	const file = "../../cmd/quotasvc/demo.yaml"
	dry := must(t, env, "apply", "-f", file, "--dry-run")
	assert.Contains(t, dry, "api_calls", "the dry run shows\n")
	assert.Equal(t, dry, must(t, env, "apply", "-f", file, "--dry-run"), "after a dry run another one")
	must(t, env, "apply", "-f", file)
	assert.Contains(t, must(t, env, "apply", "-f", file, "--dry-run"), "0 created, 0 changed",
		"after apply there is still a difference:\n")
	status, _, stderr := tool(t, env, "apply", "-f",
		write(t, "bad.yaml", "plans:\n  - plan: 'a b'\n    allowances: []\n"))
	assert.True(t, status != 0 && strings.Contains(stderr, "plan"), "a bad file ended with %d: %s", status, stderr)
}

func TestApply_InexactLimit_Refused(t *testing.T) {
	t.Parallel()
	env := []string{"QUOTASVC_DATABASE_URL=" + testenv.PostgresService(t)}
	file := write(t, "catalog.yaml",
		"limits:\n  - {rule: too-fine, per: [tenant], kind: token_bucket, rate: 7/day, burst: 999999999999}\n")
	status, _, stderr := tool(t, env, "apply", "-f", file)
	assert.True(t, status != 0 && strings.Contains(stderr, "burst"), "ended with %d: %s", status, stderr)
}

func TestRoll_CatchesUp_RefusesFuture(t *testing.T) {
	in, env := parallelService(t, 10)
	in.do(t, http.StatusOK, "POST", "/v1/debits", "one", debitOf("acme", "api_calls", 3))
	must(t, env, "roll")
	future := time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	status, _, stderr := tool(t, env, "roll", "--as-of", future)
	assert.True(t, status != 0 && strings.Contains(stderr, "future"),
		"a roll of the future ended with %d: %s", status, stderr)
	must(t, env, "verify")
	cron := launch(t, append(env, "QUOTASVC_LOG_LEVEL=info"), "roll", "--every", "1s")
	cron.logged("roll done", 2)
	cron.stop()
}

func TestVerify_Difference_NamedExitStatus1(t *testing.T) {
	in, env := parallelService(t, 10)
	in.do(t, http.StatusOK, "POST", "/v1/debits", "one", debitOf("acme", "api_calls", 3))
	assert.Contains(t, must(t, env, "verify", "--tenant", "acme"), "all agree", "a clean ledger is reported as\n")
	spoilBalance(t, env)
	status, stdout, _ := tool(t, env, "verify")
	assert.True(t, status == 1 && strings.Contains(stdout, "acme/api_calls"),
		"a balance that was tampered with: ended with %d\n%s", status, stdout)
}

// spoilBalance changes the balance of acme in the database of env, so that it differs from the journal.
func spoilBalance(t *testing.T, env []string) {
	t.Helper()
	url := testenv.AsSuperuser(t, strings.TrimPrefix(env[0], "QUOTASVC_DATABASE_URL="))
	execSQL(t, url, "UPDATE balances SET used = used + 1, head_remaining = head_remaining - 1 WHERE tenant_id = 'acme'")
}

// The JSON report of `quotasvc verify` has the same members as the report of the API.
func TestVerify_JSON_SaysWhatWasComparedAndRead(t *testing.T) {
	in, env := parallelService(t, 10)
	in.do(t, http.StatusOK, "POST", "/v1/debits", "one", debitOf("acme", "api_calls", 3))
	type report struct {
		Tenant, Status      string
		Balances            int64
		Incremental         bool
		CopiesCompared      bool     `json:"copies_compared"`
		UnreadBalances      []object `json:"unread_balances"`
		Totals, Differences []object
		DifferenceCount     int64 `json:"difference_count"`
	}
	read := func(stdout string) (got report) {
		t.Helper()
		require.NoError(t, json.Unmarshal([]byte(stdout), &got), stdout)
		return got
	}
	got := read(must(t, env, "verify", "--json", "--tenant", "acme"))
	assert.True(t, got.Status == "clean" && got.Tenant == "acme" && got.Balances == 1 && got.CopiesCompared && len(got.Totals) == 1 && !got.Incremental &&
		got.UnreadBalances != nil, got)
	alone := env[:1] // without Redis
	got = read(must(t, alone, "verify", "--json"))
	assert.True(t, got.Status == "clean" && !got.CopiesCompared, "without Redis: %+v", got)
	spoilBalance(t, env)
	status, stdout, _ := tool(t, env, "verify", "--json")
	got = read(stdout)
	assert.True(t, status == 1 && got.Status == "drift" && got.DifferenceCount != 0 && len(got.Differences) > 0,
		"a balance that was tampered with: ended with %d, %+v", status, got)
	fails(t, env, 2, "--json", "verify", "--json", "--archive", t.TempDir())
}

// A tenant's anchor is on 31 January. Its monthly periods end on the last day of shorter months, and on the 31st of
// longer months.
func TestPeriods_AnchorJanuary31_EndOnLastDays(t *testing.T) {
	in, _ := parallelService(t, 10)
	in.do(t, http.StatusCreated, "PUT", "/v1/plans/monthly", "", object{"allowances": []object{
		{"meter": "api_calls", "amount": 5, "every": "month", "anchor": "tenant"},
	}})
	in.do(t, http.StatusCreated, "PUT", "/v1/tenants/end-of-month", "", object{"plan": "monthly", "anchor": "2020-01-31T00:00:00Z"})
	list := decoded[struct {
		Items []struct{ Start, End time.Time }
	}](t, in.do(t, http.StatusOK, "GET", "/v1/tenants/end-of-month/periods?meter=api_calls&next=60", "", nil))
	ends := map[string]bool{}
	for i, p := range list.Items {
		next := p.End.AddDate(0, 0, 1)
		assert.False(t, next.Month() == p.End.Month() && p.End.Day() != 31,
			"a period ends on %s, which is not its month's last day", p.End.Format(time.DateOnly))
		assert.True(t, i == 0 || p.Start.Equal(list.Items[i-1].End),
			"a period starts at %s, not where the one before ends", p.Start)
		ends[p.End.Format("01-02")] = true
	}
	for _, want := range []string{"02-28", "02-29", "03-31", "04-30", "01-31"} {
		assert.True(t, ends[want], "none of 60 periods ends on %s", want)
	}
}
