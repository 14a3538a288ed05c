package testenv

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/lab/localstack"
)

const (
	// databasePrefix begins the name of a test's database. The hour of its creation and a random part follow:
	// quotasvc_test_<unix hours>_<random>.
	databasePrefix = "quotasvc_test_"

	// staleHours is the smallest age, in hours, at which dropStale drops a test's database.
	staleHours = 2
)

// Postgres returns the URL of a new database with all migrations applied. The database is dropped when the test ends,
// even if a connection is open.
func Postgres(t testing.TB) string {
	t.Helper()
	shared.requireMain(t)
	return shared.database(t, true)
}

// PostgresEmpty returns the URL of a new database without tables. The database is dropped when the test ends, even if
// a connection is open.
func PostgresEmpty(t testing.TB) string {
	t.Helper()
	shared.requireMain(t)
	return shared.database(t, false)
}

func (e *env) database(t testing.TB, migrated bool) string {
	t.Helper()
	p, err := e.postgres.get()
	require.NoError(t, err, "testenv: PostgreSQL")
	ctx, cancel := context.WithTimeout(context.Background(), opTimeout)
	defer cancel()
	// The creation of the template also creates the roles. They belong to the server, so AsService works with empty
	// databases too.
	template, err := p.template.get()
	require.NoError(t, err, "testenv: apply migrations")
	if !migrated {
		template = ""
	}
	name := databasePrefix + strconv.FormatInt(hours(time.Now()), 10) + "_" + strings.ToLower(rand.Text())
	require.NoError(t, p.create(ctx, name, template), "testenv")
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), opTimeout)
		defer cancel()
		assert.NoError(t, p.drop(ctx, name), "testenv")
	})
	return p.urlOf(name)
}

func hours(t time.Time) int64 { return t.Unix() / int64(time.Hour/time.Second) }

// postgresEnv is the server with the tests' databases.
type postgresEnv struct {
	base     *url.URL          // URL of the maintenance database
	citus    *localstack.Citus // nil: a single PostgreSQL server
	origin   origin
	template *lazy[string] // name of the migrated template
	facts    serverFacts
}

// serverFacts contains the properties of a server that decide how databases are created on it.
type serverFacts struct {
	fileCopy bool // copy the template's files: this halves the CPU time, and its checkpoint is cheap without fsync
	utc      bool // whether the server's databases have the time zone UTC
}

func readFacts(ctx context.Context, conn *pgx.Conn) (f serverFacts, err error) {
	const sql = `SELECT current_setting('fsync') = 'off' AND current_setting('server_version_num')::int >= 150000,
		current_setting('TimeZone') = 'UTC'`
	if err := conn.QueryRow(ctx, sql).Scan(&f.fileCopy, &f.utc); err != nil {
		return f, fmt.Errorf("read the server's settings: %w", err)
	}
	return f, nil
}

func (e *env) startPostgres(ctx context.Context) (*postgresEnv, error) {
	b, err := e.source.postgres(ctx)
	if err != nil {
		return nil, err
	}
	if b.stop != nil {
		e.onStop(b.stop)
	}
	p, err := newPostgresEnv(ctx, b)
	if err == nil {
		p.citus = b.citus
	}
	return p, err
}

func newPostgresEnv(ctx context.Context, b backend) (*postgresEnv, error) {
	base, err := url.Parse(b.url)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", EnvPostgres, err)
	}
	if base.Scheme != "postgres" && base.Scheme != "postgresql" {
		return nil, fmt.Errorf("%s must be a postgres:// URL", EnvPostgres)
	}
	p := &postgresEnv{base: base, origin: b.origin}
	p.template = newLazy(p.ensureTemplate)
	// Only a server from a URL may contain databases of other runs.
	if b.origin == fromURL {
		if err := p.dropStale(ctx); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// urlOf returns the URL of a database.
func (p *postgresEnv) urlOf(name string) string {
	u := *p.base
	u.Path = "/" + name
	return u.String()
}

// exec runs one statement on the maintenance database.
func (p *postgresEnv) exec(ctx context.Context, sql string) error {
	return connected(ctx, p.base.String(), func(conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, sql)
		return err
	})
}

// create creates a database as a copy of template. If template is empty, it copies
// template0, which is the same on every server.
func (p *postgresEnv) create(ctx context.Context, name, template string) error {
	switch {
	case p.citus != nil && template != "":
		return p.citus.CopyDatabase(ctx, name, template)
	case p.citus != nil:
		return p.citus.MakeDatabase(ctx, name)
	}
	sql := "CREATE DATABASE " + ident(name) + " TEMPLATE template0 ENCODING 'UTF8' LC_COLLATE 'C' LC_CTYPE 'C'"
	if template != "" {
		sql = "CREATE DATABASE " + ident(name) + " TEMPLATE " + ident(template)
		if p.facts.fileCopy {
			sql += " STRATEGY FILE_COPY"
		}
	}
	if err := p.exec(ctx, sql); err != nil {
		return fmt.Errorf("create database: %w", err)
	}
	if p.facts.utc {
		return nil
	}
	if err := p.exec(ctx, "ALTER DATABASE "+ident(name)+" SET timezone TO 'UTC'"); err != nil {
		return fmt.Errorf("set the time zone: %w", err)
	}
	return nil
}

func (p *postgresEnv) drop(ctx context.Context, name string) error {
	if p.citus != nil {
		return p.citus.DropDatabase(ctx, name)
	}
	if err := p.exec(ctx, "DROP DATABASE IF EXISTS "+ident(name)+" WITH (FORCE)"); err != nil {
		return fmt.Errorf("drop database: %w", err)
	}
	return nil
}

// dropStale drops the databases of killed runs on a long-lived server.
func (p *postgresEnv) dropStale(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, p.base.String())
	if err != nil {
		return fmt.Errorf("connect to the server of %s: %w", EnvPostgres, err)
	}
	defer conn.Close(ctx)
	rows, err := conn.Query(ctx, "SELECT datname FROM pg_database WHERE starts_with(datname, $1)", databasePrefix)
	if err != nil {
		return fmt.Errorf("look for stale databases: %w", err)
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return fmt.Errorf("look for stale databases: %w", err)
	}
	var errs error
	for _, name := range names {
		if stale(name, time.Now()) {
			errs = errors.Join(errs, p.drop(ctx, name))
		}
	}
	return errs
}

// stale reports whether a database is so old that the test run that has created it must have ended.
func stale(name string, now time.Time) bool {
	hour, _, ok := strings.Cut(strings.TrimPrefix(name, databasePrefix), "_")
	made, err := strconv.ParseInt(hour, 10, 64)
	return ok && err == nil && hours(now)-made >= staleHours
}

func ident(name string) string { return pgx.Identifier{name}.Sanitize() }
