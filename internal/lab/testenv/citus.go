package testenv

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/deploy/postgres"
	"github.com/quotasvc/quotasvc/internal/lab/localstack"
	"github.com/quotasvc/quotasvc/internal/store/citus"
)

const (
	// EnvCitus is the environment variable that makes Postgres return databases of a private Citus cluster. `make
	// test-citus` sets it.
	EnvCitus = "QUOTASVC_TEST_CITUS"

	// workers is the number of workers of a cluster for tests. shardGroups is the number of its shard groups: two on
	// each worker. Each shard group adds a tenth of a second to the creation of a database.
	workers     = 2
	shardGroups = 4
)

// OnCitus reports whether Postgres returns databases of a Citus cluster.
func OnCitus() bool { return os.Getenv(EnvCitus) != "" }

// Waiting returns a query that counts the sessions that wait for locks in this database. On Citus it counts the
// sessions on all nodes.
func Waiting() string {
	from := "pg_stat_activity"
	if OnCitus() {
		from = "citus_stat_activity"
	}
	return "SELECT count(*) FROM " + from + " WHERE datname = current_database() AND wait_event_type = 'Lock'"
}

// NotOnCitus skips a test that cannot apply to a Citus cluster. The test's output contains the reason.
func NotOnCitus(t testing.TB, reason string) {
	t.Helper()
	if OnCitus() {
		t.Skip("not on Citus: ", reason)
	}
}

// CitusServer is a Citus cluster for one test. All migrations are applied and the tables are distributed. The test
// may kill its nodes.
type CitusServer struct {
	URL         string
	Coordinator *PostgresServer
	Workers     []*PostgresServer
}

// CitusPrivate starts a coordinator and two workers for this test from local binaries. If PostgreSQL has no Citus,
// CitusPrivate prints how to install Citus and skips the test; under `make test-citus` the test fails.
func CitusPrivate(t testing.TB) *CitusServer {
	t.Helper()
	shared.requireBinaries(t)
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	c, stop, err := shared.source.localCitus(ctx, workers)
	switch {
	case err != nil && localstack.IsMissing(err) && !OnCitus():
		fmt.Fprintf(os.Stderr, "\nNOT TESTED: %s: %v\n\n", t.Name(), err)
		t.Skip(err)
	case err != nil:
		t.Fatal("testenv: ", err)
	}
	StopAtEnd(t, stop)
	u := Must(t).Get(url.Parse(c.Coordinator.URL()))
	u.Path = "/citus"
	require.NoError(t, errors.Join(c.MakeDatabase(ctx, "citus"), prepareCitus(ctx, u.String())), "testenv")
	server := func(name string, p *localstack.Postgres) *PostgresServer {
		at := Must(t).Get(url.Parse(p.URL()))
		at.Path = "/citus"
		return &PostgresServer{control: control{t, name, &p.Server}, URL: at.String()}
	}
	s := &CitusServer{URL: u.String(), Coordinator: server("the coordinator", c.Coordinator)}
	for _, w := range c.Workers {
		s.Workers = append(s.Workers, server("a worker", w))
	}
	return s
}

// prepareCitus applies all migrations to a database with the extension, distributes its tables, and creates the roles.
func prepareCitus(ctx context.Context, databaseURL string) error {
	err := migrateThen(ctx, databaseURL, func() error {
		return connected(ctx, databaseURL, func(conn *pgx.Conn) error {
			return citus.Distribute(ctx, conn, shardGroups, slog.New(slog.DiscardHandler))
		})
	})
	return errors.Join(err, makeServiceLoginAt(ctx, databaseURL), letRolesLogIn(ctx, databaseURL))
}

// easeUpdates lets tests change the instants of distributed rows by hand. Citus refuses UPDATE .. SET at = at -
// interval, because the result depends on the session's time zone. In tests that zone is always UTC. easeUpdates is
// not applied to the cluster of CitusPrivate, so there Citus would refuse such a statement of the service.
func easeUpdates(ctx context.Context, databaseURL string) error {
	return connected(ctx, databaseURL, func(conn *pgx.Conn) error {
		for _, function := range []string{
			"timestamptz_mi_interval(timestamptz, interval)", "timestamptz_pl_interval(timestamptz, interval)",
			"timestamptz_in(cstring, oid, integer)", "jsonb_build_object(VARIADIC \"any\")", "to_jsonb(anyelement)",
		} {
			if _, err := conn.Exec(ctx, "ALTER FUNCTION pg_catalog."+function+" IMMUTABLE"); err != nil {
				return fmt.Errorf("ease updates by hand: %w", err)
			}
		}
		return nil
	})
}

// letRolesLogIn gives the roles the password with which the nodes log in. A node copies shards from another node as
// the owner of the tables. The coordinator reads from the nodes as the role of the session. In tests that role may be
// the reader or the service.
func letRolesLogIn(ctx context.Context, databaseURL string) error {
	return connected(ctx, databaseURL, func(conn *pgx.Conn) error {
		password := strings.ReplaceAll(conn.Config().Password, "'", "''")
		for _, role := range []string{postgres.OwnerRole, postgres.ServiceRole, postgres.ReaderRole} {
			if _, err := conn.Exec(ctx, "ALTER ROLE "+role+" LOGIN PASSWORD '"+password+"'"); err != nil {
				return fmt.Errorf("let the role %s log in: %w", role, err)
			}
		}
		return nil
	})
}

// localCitus starts a private Citus cluster from local binaries, as localPostgres starts one server.
func (s source) localCitus(ctx context.Context, workers int) (*localstack.Citus, func(context.Context) error, error) {
	dir, err := s.postgresDir(ctx)
	if err != nil {
		return nil, nil, err
	}
	c, err := localstack.StartCitus(ctx, localstack.CitusConfig{
		PostgresConfig: localstack.PostgresConfig{
			Dir: dir, Extra: map[string]string{
				"max_connections": maxConnections, "max_wal_size": maxWALSize,
				"citus.enable_unsafe_triggers": "on", // tests use triggers to make rows fail
				"citus.recover_2pc_interval":   "1s", // prepared transactions of a killed node keep locks for this time
			}, Cache: s.cache, Search: &s.search,
		},
		Workers: workers,
	})
	if err != nil {
		return nil, nil, errors.Join(err, os.RemoveAll(dir))
	}
	stop := func(ctx context.Context) error { return errors.Join(c.Stop(ctx), os.RemoveAll(dir)) }
	return c, stop, nil
}
