package postgres_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/deploy/postgres"
	"github.com/quotasvc/quotasvc/internal/lab/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// refused fails the test unless PostgreSQL refuses the statement because the role lacks a right.
func refused(t *testing.T, conn *pgx.Conn, sql string) {
	t.Helper()
	_, err := conn.Exec(t.Context(), sql)
	pgErr, ok := errors.AsType[*pgconn.PgError](err)
	assert.True(t, ok && pgErr.Code == "42501", "%s: got %v, want permission denied", sql, err)
}

const entry = `INSERT INTO entries (tenant_id, operation_id, line, month, seq, kind, meter, subject, period_start, grant_id, source, amount, remaining_after, item, created_at)
	VALUES ('t', 'k', 1, date_trunc('month', now())::date, 1, 'debit', 'm', '', now(), '', '', 1, 1, 0, now())`

// A person with the password of the service can neither change nor remove stored operations, nor change the schema.
func TestRoles_Service_AppendsAndNothingElse(t *testing.T) {
	t.Parallel()
	url := testenv.Postgres(t)
	super, service := testenv.Connect(t, url), testenv.Connect(t, testenv.AsService(url))
	testenv.Exec(t, service, entry)
	var partition string
	require.NoError(t, super.QueryRow(t.Context(), `SELECT to_char(month, '"entries_"YYYY_MM') FROM entries`).Scan(&partition))
	testenv.Exec(t, service, "INSERT INTO audit (actor_key, actor_name, action, object_kind, object_id) VALUES ('k', 'n', 'a', 'o', 'i')")
	for _, table := range []string{"entries", partition, "periods", "audit", "rollups", "plans", "plan_allowances", "journal_months"} {
		refused(t, service, "DELETE FROM "+table)
		refused(t, service, "TRUNCATE "+table)
		refused(t, service, "DROP TABLE "+table)
		refused(t, service, "ALTER TABLE "+table+" ADD COLUMN extra int")
	}
	for table, column := range map[string]string{
		"entries": "amount = 1", partition: "amount = 1", "periods": "closing = 1", "audit": "actor_name = ''", "plans": "version = 2",
		"tenant_terms": "reason = ''", "seals": "root = ''", "sealed_heads": "chain = ''", "archives": "manifest = ''", "chain_start": "at = now()",
	} {
		refused(t, service, "UPDATE "+table+" SET "+column)
	}
	for _, sql := range []string{
		"CREATE TABLE public.extra (n int)", "CREATE SCHEMA extra", "CREATE ROLE extra", "ALTER TABLE entries DETACH PARTITION " + partition,
		"ALTER TABLE entries DISABLE TRIGGER ALL", "CREATE TRIGGER x BEFORE INSERT ON entries EXECUTE FUNCTION suppress_redundant_updates_trigger()",
		"INSERT INTO seals DEFAULT VALUES", "DELETE FROM sealed_heads", "INSERT INTO archives DEFAULT VALUES", "INSERT INTO goose_db_version (version_id, is_applied) VALUES (99, true)",
		"DELETE FROM tenants", "DELETE FROM grants", "DELETE FROM holds", "DELETE FROM refunds", "DELETE FROM keys",
		"UPDATE signing_keys SET secret = secret", "DELETE FROM signing_keys", "SET ROLE quotasvc_owner",
		"SET session_replication_role = replica",
	} {
		refused(t, service, sql)
	}
}

func TestRoles_Reader_ReadsAllButHashesOfKeys(t *testing.T) {
	t.Parallel()
	conn := testenv.Connect(t, testenv.Postgres(t))
	testenv.Exec(t, conn, entry)
	testenv.Exec(t, conn, "SET ROLE "+postgres.ReaderRole)
	for _, table := range []string{"entries", "balances", "audit", "keys", "tenants", "goose_db_version"} {
		testenv.Exec(t, conn, "SELECT * FROM "+table)
		refused(t, conn, "DELETE FROM "+table)
		refused(t, conn, "INSERT INTO "+table+" DEFAULT VALUES")
	}
	refused(t, conn, "SELECT * FROM key_secrets")
	refused(t, conn, "SELECT * FROM signing_keys")
	refused(t, conn, "CREATE TABLE public.extra (n int)")
}

// This test fails if a migration adds a table and roles.sql does not name it.
func TestRoles_EveryTable_IsNamedAndOwnedByTheOwner(t *testing.T) {
	t.Parallel()
	conn := testenv.Connect(t, testenv.Postgres(t))
	rows, err := conn.Query(t.Context(), `SELECT c.relname, c.relispartition, pg_get_userbyid(c.relowner) FROM pg_class c
		WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p', 'v')
		AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.objid = c.oid AND d.deptype = 'e')`) // not tables of extensions
	require.NoError(t, err)
	var name, owner string
	var partition bool
	tables := 0
	_, err = pgx.ForEachRow(rows, []any{&name, &partition, &owner}, func() error {
		tables++
		assert.False(t, !partition && !strings.Contains(postgres.RolesSQL, "('"+name+"',"),
			"roles.sql has no row for the table %s", name)
		assert.True(t, owner == postgres.OwnerRole, "%s belongs to %s", name, owner)
		return nil
	})
	assert.True(t, err == nil && tables >= 30, "%d tables, %v", tables, err)
}

// roles.sql is run after each migration, even by the owner, and while the service is running.
func TestRoles_RunAgain_ByTheOwner_SameRights(t *testing.T) {
	t.Parallel()
	url := testenv.Postgres(t)
	super, owner, service := testenv.Connect(t, url), testenv.Connect(t, url), testenv.Connect(t, testenv.AsService(url))
	rights := func() (text string) {
		t.Helper()
		err := super.QueryRow(t.Context(), `SELECT string_agg(relname || ' ' || (SELECT array_agg(a::text ORDER BY a::text) FROM unnest(relacl) a)::text, E'\n' ORDER BY relname)
			FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relacl IS NOT NULL`).Scan(&text)
		require.NoError(t, err)
		return text
	}
	was := rights()
	testenv.Exec(t, super, "GRANT UPDATE ON entries TO quotasvc_service; GRANT SELECT ON key_secrets TO PUBLIC")
	testenv.Exec(t, service, "BEGIN; "+entry) // RolesSQL must not wait for a transaction that uses the tables
	testenv.Exec(t, owner, "SET ROLE quotasvc_owner")
	testenv.Exec(t, owner, postgres.RolesSQL)
	got := rights()
	assert.True(t, got == was, "the rights are\n%s\nbefore\n%s", got, was)
	testenv.Exec(t, service, "COMMIT")
	refused(t, service, "UPDATE entries SET amount = 1")
}

// The rights also apply to partitions and tables that the owner creates later, without a further command.
func TestRoles_NewPartition_ServiceAppendsReaderReads(t *testing.T) {
	t.Parallel()
	url := testenv.Postgres(t)
	owner, service := testenv.Connect(t, url), testenv.Connect(t, testenv.AsService(url))
	testenv.Exec(t, owner, "SET ROLE quotasvc_owner")
	for _, sql := range []string{ // one statement at a time, because Citus sends each text to the nodes
		"CREATE TABLE entries_2099_01 (LIKE entries INCLUDING ALL)",
		"ALTER TABLE entries ATTACH PARTITION entries_2099_01 FOR VALUES FROM ('2099-01-01') TO ('2099-02-01')",
		"CREATE TABLE later (n int)",
	} {
		testenv.Exec(t, owner, sql)
	}
	testenv.Exec(t, service, strings.NewReplacer("date_trunc('month', now())::date", "'2099-01-01'", "now()", "'2099-01-02'").Replace(entry))
	testenv.Exec(t, service, "INSERT INTO later VALUES (1)")
	refused(t, service, "DELETE FROM entries_2099_01")
	refused(t, service, "DELETE FROM later")
	testenv.Exec(t, owner, "SET ROLE quotasvc_reader")
	testenv.Exec(t, owner, "SELECT * FROM entries_2099_01; SELECT * FROM later")
}

// The roles can be created before the tables. They can also be created in a database whose tables all belong to one
// other role.
func TestRoles_EmptyDatabase_OwnerMayMakeTables(t *testing.T) {
	t.Parallel()
	conn := testenv.Connect(t, testenv.PostgresEmpty(t))
	testenv.Exec(t, conn, postgres.RolesSQL)
	testenv.Exec(t, conn, "SET ROLE quotasvc_owner; CREATE TABLE balances (n int); RESET ROLE")
	testenv.Exec(t, conn, "CREATE TABLE periods (n int)") // owned by the role of an old installation
	testenv.Exec(t, conn, postgres.RolesSQL)
	testenv.Exec(t, conn, "SET ROLE quotasvc_owner; ALTER TABLE periods ADD COLUMN m int; SET ROLE quotasvc_service; INSERT INTO periods VALUES (1, 2)")
	refused(t, conn, "DELETE FROM periods")
}
