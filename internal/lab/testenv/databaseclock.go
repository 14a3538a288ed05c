package testenv

import (
	"context"
	"net"
	"net/url"
	"strconv"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

// DatabaseClock is a clock of one database that the test can move. It changes clock_timestamp() in every session that
// begins after MoveClock. On Citus it changes the sessions on all nodes.
type DatabaseClock struct {
	t     testing.TB
	nodes []string // URLs of the database, one for each node
}

// MoveClock lets the test move the clock of the database at databaseURL. The role in the URL must be a superuser.
// Before the first move, the clock shows the machine's time.
func MoveClock(t testing.TB, databaseURL string) *DatabaseClock {
	t.Helper()
	c := &DatabaseClock{t, []string{databaseURL}}
	if OnCitus() {
		c.nodes = nodesOf(t, databaseURL)
	}
	// Each node has its own table moved.clock, which Citus does not manage. The reason is that a statement must not
	// query other nodes if a node executes it for another node. Citus forwards pg_catalog.clock_timestamp() without its
	// schema. On the node, that call would be a call of moved.clock_timestamp(). So the function uses timeofday.
	c.exec(`CREATE SCHEMA moved;
		CREATE TABLE moved.clock (ahead interval NOT NULL);
		INSERT INTO moved.clock VALUES ('0');
		CREATE FUNCTION moved.clock_timestamp() RETURNS timestamptz VOLATILE LANGUAGE sql
			AS 'SELECT timeofday()::timestamptz + ahead FROM moved.clock';
		GRANT USAGE ON SCHEMA moved TO PUBLIC; GRANT SELECT ON moved.clock TO PUBLIC;
		DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET search_path = public, moved, pg_catalog', current_database()); END $$`)
	return c
}

// nodesOf returns the URLs of the database on all nodes of a Citus cluster.
func nodesOf(t testing.TB, databaseURL string) (nodes []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), opTimeout)
	defer cancel()
	u, err := url.Parse(databaseURL)
	require.NoError(t, err, "testenv: nodes")
	conn, err := pgx.Connect(ctx, databaseURL)
	require.NoError(t, err, "testenv: nodes")
	defer conn.Close(ctx)
	rows, err := conn.Query(ctx, "SELECT nodename, nodeport FROM pg_dist_node")
	require.NoError(t, err, "testenv: nodes")
	var host string
	var port int
	_, err = pgx.ForEachRow(rows, []any{&host, &port}, func() error {
		u.Host = net.JoinHostPort(host, strconv.Itoa(port))
		nodes = append(nodes, u.String())
		return nil
	})
	require.NoError(t, err, "testenv: nodes")
	return nodes
}

// Ahead sets the clock to the machine's time plus an interval in PostgreSQL's syntax, such as "-4 months".
func (c *DatabaseClock) Ahead(by string) {
	c.t.Helper()
	c.exec("UPDATE moved.clock SET ahead = $1::interval", by)
}

// Advance moves the clock forward by d.
func (c *DatabaseClock) Advance(d time.Duration) {
	c.t.Helper()
	c.exec("UPDATE moved.clock SET ahead = ahead + $1::interval", d)
}

// Set sets the clock to an instant, from which the clock continues.
func (c *DatabaseClock) Set(at time.Time) {
	c.t.Helper()
	c.exec("UPDATE moved.clock SET ahead = $1::interval", time.Until(at))
}

// Remove removes the clock: new sessions of the database use the machine's time again.
func (c *DatabaseClock) Remove() {
	c.t.Helper()
	c.exec(`DO $$ BEGIN EXECUTE format('ALTER DATABASE %I RESET search_path', current_database()); END $$;
		DROP SCHEMA moved CASCADE`)
}

// exec executes SQL on each node.
func (c *DatabaseClock) exec(sql string, args ...any) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), opTimeout)
	defer cancel()
	for _, node := range c.nodes {
		cfg, err := pgx.ParseConfig(node)
		require.NoError(c.t, err, "testenv: move the clock")
		if OnCitus() {
			cfg.RuntimeParams["citus.enable_ddl_propagation"] = "off"
		}
		conn, err := pgx.ConnectConfig(ctx, cfg)
		require.NoError(c.t, err, "testenv: move the clock")
		_, err = conn.Exec(ctx, sql, args...)
		require.NoError(c.t, err, "testenv: move the clock")
		_ = conn.Close(ctx)
	}
}
