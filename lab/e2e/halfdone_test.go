package e2e

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
)

// envKills is the environment variable that lets the tests kill a command at each of its statements. `make kills` sets
// it. Without it they kill it at some of the statements.
const envKills = "QUOTASVC_TEST_KILLS"

func killsAll() bool { return os.Getenv(envKills) != "" }

// killed is the result of a command that was run through a link.
type killed struct {
	at     string // statement at which the command was killed; empty: it ended by itself
	status int
	output string
}

// runUntil runs quotasvc with the database at the other end of a link, and kills it where the link breaks.
func runUntil(t *testing.T, link *testenv.CutLink, cut testenv.Cut, args ...string) killed {
	t.Helper()
	started := make(chan *os.Process, 1)
	cut.Kill = func() { _ = (<-started).Kill() } // it may have ended by itself
	link.Cut(cut)
	cmd := exec.Command(quotasvc(t), args...)
	cmd.Env = append(withoutSettings(os.Environ()), "QUOTASVC_DATABASE_URL="+link.URL)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	require.NoError(t, cmd.Start())
	started <- cmd.Process
	_ = cmd.Wait() // the status is in ProcessState
	return killed{link.BrokeAt(), cmd.ProcessState.ExitCode(), out.String()}
}

// firstWithData is the step of the schema after which the test of killed migrations stores data. Each later step that
// moves rows, or waits for readers, finds rows.
const firstWithData = 3

const oldData = `
	INSERT INTO entries (tenant_id, operation_id, line, month, seq, kind, meter, subject, period_start, grant_id,
		source, amount, remaining_after, item, created_at, detail)
	SELECT 't', 'k' || n / 2, 1, date_trunc('month', now() - make_interval(months => n % 5)), n, 'debit', 'm', '',
		now(), '', '', 5, 1, 0, now() - make_interval(months => n % 5), '{}' FROM generate_series(1, 60) n;
	INSERT INTO refunds (tenant_id, operation_id, line, refunded)
	SELECT 't', 'k' || n, 1, 7 FROM generate_series(1, 20) n`

// schemaOf is the query for the schema of a database and for the data that migrations move, one fact a row.
const schemaOf = `
	SELECT concat_ws(' ', attrelid::regclass, attname, format_type(atttypid, atttypmod), attnotnull,
			pg_get_expr(adbin, adrelid))
		FROM pg_attribute JOIN pg_class c ON c.oid = attrelid 
		LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum
		WHERE relnamespace = 'public'::regnamespace AND attnum > 0 AND NOT attisdropped AND relkind IN ('r', 'p', 'v')
	UNION ALL SELECT concat_ws(' ', conrelid::regclass, conname, pg_get_constraintdef(oid), convalidated)
		FROM pg_constraint WHERE connamespace = 'public'::regnamespace
	UNION ALL SELECT concat_ws(' ', pg_get_indexdef(indexrelid), 'valid', indisvalid)
		FROM pg_index JOIN pg_class ON oid = indexrelid WHERE relnamespace = 'public'::regnamespace
	UNION ALL SELECT concat_ws(' ', c.oid::regclass, 'in', inhparent::regclass, pg_get_expr(relpartbound, c.oid))
		FROM pg_inherits JOIN pg_class c ON c.oid = inhrelid
	UNION ALL SELECT pg_get_functiondef(oid) FROM pg_proc WHERE pronamespace = 'public'::regnamespace
	UNION ALL SELECT pg_get_triggerdef(oid) FROM pg_trigger WHERE NOT tgisinternal
	UNION ALL SELECT 'step ' || version_id FROM goose_db_version
	UNION ALL SELECT concat_ws(' ', 'entry', operation_id, line, month, 'in', tableoid::regclass) FROM entries
	UNION ALL SELECT 'refund ' || r FROM refunds r
	UNION ALL SELECT 'month ' || m FROM journal_months m ORDER BY 1`

// A migration can be interrupted anywhere and run again. The schema is then the same as without an interruption. Steps
// that are no single transaction are killed at each statement, all others at their commit.
func TestMigrateUp_KilledAtEachStatement_NextRunGoesOn(t *testing.T) {
	testenv.NotOnCitus(t, "no database was distributed before these migrations")
	t.Parallel()
	facts := func(url string) []string {
		rows, err := testenv.Connect(t, url).Query(t.Context(), schemaOf)
		require.NoError(t, err)
		return testenv.Must(t).Get(pgx.CollectRows(rows, pgx.RowTo[string]))
	}
	noon := time.Now().UTC().Truncate(24 * time.Hour).Add(12 * time.Hour)
	empty := func(t *testing.T) string {
		url := testenv.PostgresEmpty(t)
		testenv.MoveClock(t, url).Set(noon) // partitions are made around this instant: no week may begin meanwhile
		execSQL(t, url, `CREATE FUNCTION moved.now() RETURNS timestamptz STABLE LANGUAGE sql
			AS 'SELECT clock_timestamp()'`)
		return url
	}
	whole := empty(t)
	_, err := testenv.Migrator(t, whole).UpTo(t.Context(), firstWithData)
	require.NoError(t, err)
	execSQL(t, whole, oldData)
	must(t, []string{"QUOTASVC_DATABASE_URL=" + whole}, "migrate", "up")
	want := facts(whole)
	for _, amid := range []bool{false, true} {
		t.Run(fmt.Sprintf("amid=%t", amid), func(t *testing.T) {
			t.Parallel()
			m := &killedMigration{url: empty(t), amid: amid}
			m.link, m.conn = testenv.NewCutLink(t, m.url), testenv.Connect(t, m.url)
			for m.next(t, "up") {
				if m.moved && m.step == firstWithData {
					execSQL(t, m.url, oldData)
				}
			}
			assert.Empty(t, onlyInOne(want, facts(m.url)), "after %d kills", m.kills)
			assert.Greater(t, m.kills, 40, "kills")
			if !killsAll() {
				return
			}
			for m.step > firstWithData {
				m.next(t, "down")
			}
			for m.next(t, "up") {
			}
			schema := func(fact string) bool { return !movedData.MatchString(fact) }
			before, again := slices.DeleteFunc(slices.Clone(want), schema), slices.DeleteFunc(facts(m.url), schema)
			assert.Empty(t, onlyInOne(before, again), "after all steps were undone and applied again")
		})
	}
}

// movedData matches the facts of schemaOf that are the same after `migrate down` and `migrate up`. Indexes of
// partitions that exist already get other names.
var movedData = regexp.MustCompile("^(entry|refund|month|step) ")

// onlyInOne returns the texts that one of two lists lacks.
func onlyInOne(a, b []string) []string {
	without := func(list, other []string) []string {
		return slices.DeleteFunc(slices.Clone(list), func(text string) bool { return slices.Contains(other, text) })
	}
	return append(without(a, b), without(b, a)...)
}

// killedMigration is a database whose migrations are killed and run again.
type killedMigration struct {
	url   string
	link  *testenv.CutLink
	conn  *pgx.Conn
	amid  bool
	nth   int // number of the statement at which the latest run was killed
	kills int
	step  int64 // newest step of the schema
	moved bool  // whether the latest run has changed step
}

// counts reports whether a migration is killed at a statement.
func (m *killedMigration) counts(statement string, inTx bool) bool {
	word, _, _ := strings.Cut(strings.ToUpper(statement), " ")
	switch word {
	case "SELECT", "WITH", "BEGIN", "--": // changes nothing
		return killsAll()
	case "COMMIT":
		return !m.amid
	}
	return !inTx || killsAll()
}

// next runs a migration, and reports whether it was killed. Each step is killed at its first statement that counts, in
// the next run at its second one, and so on.
func (m *killedMigration) next(t *testing.T, direction string) bool {
	t.Helper()
	if m.moved {
		m.nth = 0
	}
	if m.nth++; m.nth > 12 && !killsAll() {
		m.nth += m.nth / 2 // no step has so many statements; partitions are made after them, all in the same way
	}
	cut := testenv.Cut{Nth: m.nth, Counts: m.counts, Amid: m.amid}
	run := runUntil(t, m.link, cut, "migrate", direction)
	before := m.step
	const newest = "SELECT max(version_id) FROM goose_db_version"
	_ = m.conn.QueryRow(t.Context(), newest).Scan(&m.step) // the table may not exist yet
	m.moved = m.step != before
	if run.at == "" {
		require.Zero(t, run.status, "after %d kills: %s", m.kills, run.output)
		return false
	}
	m.kills++
	require.Less(t, m.nth, 1000, "the migration does not come to an end; it was killed at %s", run.at)
	return true
}

// Each command that writes to the database can be killed at any statement and run again. Then its work is done once and
// whole, and the verification agrees.
func TestCommands_KilledAtAStatement_NextRunEndsTheWork(t *testing.T) {
	testenv.NotOnCitus(t, "the link is to one server")
	t.Parallel()
	url := testenv.Postgres(t)
	moved := monthsAgo(t, url, 4)
	const skew, tenants, meters = "8760h", 30, 25
	must(t, []string{"QUOTASVC_DATABASE_URL=" + url}, "migrate", "partitions")
	env := append(using(testenv.AsService(url), testenv.RedisURL(t)), "QUOTASVC_CLOCK_SKEW_MAX="+skew)
	in := serve(t, env)
	key := in.oldUse(t, tenants)
	in.stop()
	moved.Ahead("0")

	link, conn := testenv.NewCutLink(t, url), testenv.Connect(t, url)
	number := func(query string) (n int) {
		require.NoError(t, conn.QueryRow(t.Context(), query).Scan(&n), query)
		return n
	}
	oneOf := func(query string, all int) func() bool {
		return func() bool { n := number(query); return n == 0 || n == all }
	}
	sealed, archived := filepath.Join(t.TempDir(), "seal.json"), filepath.Join(t.TempDir(), "archive")
	var catalogue strings.Builder
	catalogue.WriteString("meters:\n")
	for i := range meters {
		fmt.Fprintf(&catalogue, "  - {meter: m%d, unit: u}\n", i)
	}
	const (
		archives  = "SELECT count(*) FROM audit WHERE action = 'journal.archive'"
		rotations = "SELECT count(*) FROM audit WHERE action = 'key.rotate'"
	)
	border := firstOfMonth().AddDate(0, -2, 0).Format("2006-01")
	for _, c := range []struct {
		args  []string
		holds func() bool // after each kill
	}{
		{[]string{"roll", "--clock-skew-max", skew}, func() bool { return true }},
		{[]string{"seal", "--out", sealed}, oneOf("SELECT count(*) FROM seals", 1)},
		{[]string{"archive", "--before", border, "--to", archived}, oneOf(archives, 1)},
		{
			[]string{"apply", "--clock-skew-max", skew, "-f", write(t, "catalog.yaml", catalogue.String())},
			oneOf("SELECT count(*) FROM meters WHERE meter ~ '^m'", meters),
		},
		{[]string{"keys", "rotate", key.ID, "--overlap", "1h", "--json"}, func() bool {
			return number("SELECT count(*) FROM key_secrets") == 1+number(rotations)
		}},
	} {
		kills := 0
		for nth := 1; ; nth++ {
			run := runUntil(t, link, testenv.Cut{Nth: nth}, c.args...)
			require.True(t, c.holds(), "%v: killed at statement %d, %s", c.args, nth, run.at)
			if run.at == "" {
				require.Zero(t, run.status, "%v after %d kills: %s", c.args, kills, run.output)
				break
			}
			if kills++; !killsAll() {
				nth += nth / 4
			}
		}
		assert.GreaterOrEqual(t, kills, 5, "kills of %v", c.args)
	}
	assert.Equal(t, meters, number("SELECT count(*) FROM meters WHERE meter ~ '^m'"), "meters")
	assert.Equal(t, 1, number(archives), "lines about the archive")
	due := number("SELECT count(*) FROM balances WHERE coalesce(roll_at, next_event_at) < now()")
	assert.Zero(t, due, "balances that are due")
	must(t, env, "verify", "--full")
	must(t, env, "verify", "--seal", sealed)
	must(t, env, "verify", "--archive", archived)
	in = serve(t, env)
	assert.Equal(t, 200, in.authorized(t, key.Secret), "the first secret, in the overlap")
	for i := range tenants {
		b := in.balance(t, fmt.Sprint("t", i), "calls")
		assert.True(t, b.Remaining == 150 && b.Used == 0, "t%d: %+v", i, b)
	}
}

// oldKey is an API key with its secret.
type oldKey struct {
	ID     string `json:"key_id"`
	Secret string
}

// oldUse creates tenants that use their allowance of a day, and a key.
func (in *instance) oldUse(t *testing.T, tenants int) oldKey {
	t.Helper()
	in.do(t, http.StatusCreated, "PUT", "/v1/meters/calls", "", object{"unit": "call"})
	in.do(t, http.StatusCreated, "PUT", "/v1/plans/basic", "", object{"allowances": []object{
		{"meter": "calls", "amount": 100, "every": "day", "anchor": "calendar", "rollover": object{"max": 50}},
	}})
	for i := range tenants {
		tenant := fmt.Sprint("t", i)
		in.do(t, http.StatusCreated, "PUT", "/v1/tenants/"+tenant, "", object{"plan": "basic"})
		in.do(t, http.StatusOK, "POST", "/v1/debits", "old", debitOf(tenant, "calls", 30))
	}
	key := object{"name": "k", "scopes": []string{"read"}}
	return decoded[oldKey](t, in.do(t, http.StatusCreated, "POST", "/v1/keys", "", key))
}
