package testenv

import (
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func scan[T any](t *testing.T, conn *pgx.Conn, sql string, args ...any) T {
	t.Helper()
	var v T
	require.NoError(t, conn.QueryRow(t.Context(), sql, args...).Scan(&v), "%s", sql)
	return v
}

func TestPostgres_Database_FullyMigrated(t *testing.T) {
	t.Parallel()
	conn := Connect(t, Postgres(t))
	assert.NotZero(t, scan[int](t, conn, "SELECT count(*) FROM goose_db_version WHERE version_id > 0 AND is_applied"),
		"no migration is recorded as applied")
	assert.True(t, scan[bool](t, conn, "SELECT to_regclass('balances') IS NOT NULL"), "the table balances is missing")
}

func TestPostgresEmpty_Database_NoTables(t *testing.T) {
	t.Parallel()
	conn := Connect(t, PostgresEmpty(t))
	const tables = "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'"
	assert.Zero(t, scan[int](t, conn, tables), "tables, want none")
}

func TestPostgres_Database_ByteOrderUTF8AndUTC(t *testing.T) {
	t.Parallel()
	server := PostgresPrivate(t)
	admin := Connect(t, server.URL)
	// ALTER ROLE ALL imitates a server with another time zone. A configuration file would have no effect, because the
	// command line of the server sets the time zone.
	Must(t).Get(admin.Exec(t.Context(), "ALTER ROLE ALL SET timezone TO 'Asia/Tokyo'"))
	foreign := Must(t).Get(newPostgresEnv(t.Context(), backend{url: server.URL, origin: fromURL}))
	require.NoError(t, foreign.create(t.Context(), "abroad", ""))
	for name, url := range map[string]string{
		"migrated": Postgres(t), "empty": PostgresEmpty(t), "on a foreign server": foreign.urlOf("abroad"),
	} {
		conn := Connect(t, url)
		assert.True(t, scan[bool](t, conn, "SELECT 'B' < 'a' AND 'z' < 'ä'"), "%s: text is not ordered by byte", name)
		assert.EqualValues(t, "UTF8", scan[string](t, conn, "SHOW server_encoding"), "%s: encoding", name)
		assert.EqualValues(t, "UTC", scan[string](t, conn, "SHOW timezone"), "%s: time zone", name)
	}
}

func TestPostgres_TwoTests_SeparateDatabases(t *testing.T) {
	t.Parallel()
	a, b := Connect(t, PostgresEmpty(t)), Connect(t, PostgresEmpty(t))
	Must(t).Get(a.Exec(t.Context(), "CREATE TABLE mine (n integer)"))
	assert.False(t, scan[bool](t, b, "SELECT to_regclass('mine') IS NOT NULL"),
		"one test's table shows in the other's database")
}

func TestPostgres_ConnectedAtEnd_StillDropped(t *testing.T) {
	t.Parallel()
	var name string
	t.Run("the test", func(t *testing.T) {
		url := Postgres(t)
		conn, err := pgx.Connect(t.Context(), url) // the test does not close it
		require.NoError(t, err)
		name = conn.Config().Database
	})
	observer := Connect(t, PostgresEmpty(t))
	assert.False(t, scan[bool](t, observer, "SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)", name),
		"database %s is still there", name)
}

// Two processes that share a server need the template at the same time. One process creates it; the other waits, and
// then uses it.
func TestTemplate_ConcurrentProcesses_CreatedOnce(t *testing.T) {
	t.Parallel()
	server := PostgresPrivate(t)
	names := make(chan string, 4)
	for range cap(names) {
		go func() {
			p, err := newPostgresEnv(t.Context(), backend{url: server.URL, origin: fromURL})
			if err != nil {
				t.Error(err)
				names <- ""
				return
			}
			name, err := p.template.get()
			assert.NoError(t, err)
			names <- name
		}()
	}
	first := <-names
	for range cap(names) - 1 {
		assert.Equal(t, first, <-names)
	}
	conn := Connect(t, server.URL)
	const templates = "SELECT count(*) FROM pg_database WHERE starts_with(datname, $1)"
	assert.Equal(t, 1, scan[int](t, conn, templates, templatePrefix), "templates")
}

// If a process is killed while it creates the template, it leaves a template that accepts connections. This shows
// that the template is incomplete.
func TestTemplate_Unfinished_CreatedAgain(t *testing.T) {
	t.Parallel()
	server := PostgresPrivate(t)
	p := Must(t).Get(newPostgresEnv(t.Context(), backend{url: server.URL, origin: fromURL}))
	name := Must(t).Get(p.ensureTemplate(t.Context()))
	for _, sql := range []string{
		"DROP DATABASE " + ident(name), "CREATE DATABASE " + ident(name),
	} {
		require.NoError(t, p.exec(t.Context(), sql))
	}
	Must(t).Get(p.ensureTemplate(t.Context()))
	require.NoError(t, p.create(t.Context(), "clone", name))
	conn := Connect(t, p.urlOf("clone"))
	assert.True(t, scan[bool](t, conn, "SELECT to_regclass('balances') IS NOT NULL"),
		"the unfinished template was used")
}

func TestPostgres_KilledRun_OldDatabasesDropped(t *testing.T) {
	t.Parallel()
	server := PostgresPrivate(t)
	conn := Connect(t, server.URL)
	for _, name := range []string{"quotasvc_test_100_killed", "quotasvc_test_99999999_young", "quotasvc_test_somebodys"} {
		Must(t).Get(conn.Exec(t.Context(), "CREATE DATABASE "+ident(name)))
	}
	Must(t).Get(newPostgresEnv(t.Context(), backend{url: server.URL, origin: fromURL}))
	left := scan[[]string](t, conn, "SELECT array_agg(datname::text ORDER BY datname) FROM pg_database WHERE starts_with(datname, $1)", databasePrefix)
	assert.EqualValues(t, "quotasvc_test_99999999_young quotasvc_test_somebodys", strings.Join(left, " "), "left")
}

func TestTemplate_Name_ChangesWithMigrationsRolesAndMonth(t *testing.T) {
	t.Parallel()
	november := time.Date(2026, 11, 30, 23, 59, 59, 0, time.UTC)
	files := func(text string) fstest.MapFS { return fstest.MapFS{"00001_a.sql": {Data: []byte(text)}} }
	two := files("x")
	two["00002_b.sql"] = &fstest.MapFile{Data: []byte("y")}
	seen := map[string]string{}
	for what, args := range map[string]struct {
		files fstest.MapFS
		roles string
		now   time.Time
	}{
		"base":        {files("x"), "r", november},
		"other roles": {files("x"), "s", november},
		"edited":      {files("z"), "r", november},
		"one more":    {two, "r", november},
		"next month":  {files("x"), "r", november.Add(time.Second)},
		"split files": {fstest.MapFS{"00001_a.sql": {}, "00002_b.sql": {Data: []byte("xy")}}, "r", november},
	} {
		name := Must(t).Get(templateName(args.files, args.roles, args.now))
		other, ok := seen[name]
		assert.False(t, ok, "%q and %q share the template %s", what, other, name)
		seen[name] = what
	}
	again := Must(t).Get(templateName(files("x"), "r", november.Add(-29*24*time.Hour)))
	assert.EqualValues(t, "base", seen[again], "the name changes within a month though no migration did")
}
