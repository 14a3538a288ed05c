package testenv

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// DatabaseClock is the clock of one database, which the test moves: clock_timestamp() of every session that begins after MoveClock. On Citus it is
// that of all nodes.
type DatabaseClock struct {
	t   testing.TB
	url string
}

// movedPath makes statements find moved.clock_timestamp() before PostgreSQL's own function.
const movedPath = "moved, pg_catalog, public"

// MoveClock lets the test move the clock of the database at url, whose role is a superuser. Until then it shows the machine's time.
func MoveClock(t testing.TB, url string) *DatabaseClock {
	t.Helper()
	c := &DatabaseClock{t, url}
	c.exec(`CREATE SCHEMA moved;
		CREATE TABLE moved.clock (one integer PRIMARY KEY, ahead interval NOT NULL);
		INSERT INTO moved.clock VALUES (1, '0')`)
	if OnCitus() {
		c.exec("SELECT create_reference_table('moved.clock')")
	}
	c.exec(`CREATE FUNCTION moved.clock_timestamp() RETURNS timestamptz VOLATILE LANGUAGE sql
			AS 'SELECT pg_catalog.clock_timestamp() + ahead FROM moved.clock';
		GRANT USAGE ON SCHEMA moved TO PUBLIC; GRANT SELECT ON moved.clock TO PUBLIC`)
	c.onNodes("ALTER DATABASE %I SET search_path = " + movedPath)
	return c
}

// Ahead sets the clock to the machine's time plus an interval of PostgreSQL, such as "-4 months".
func (c *DatabaseClock) Ahead(by string) {
	c.t.Helper()
	c.exec("UPDATE moved.clock SET ahead = $1::interval", by)
}

// Advance moves the clock by d from where it is.
func (c *DatabaseClock) Advance(d time.Duration) {
	c.t.Helper()
	c.exec("UPDATE moved.clock SET ahead = ahead + $1::interval", d)
}

// Set sets the clock to an instant, from which it goes on.
func (c *DatabaseClock) Set(at time.Time) {
	c.t.Helper()
	c.exec("UPDATE moved.clock SET ahead = $1::interval", time.Until(at))
}

// Remove leaves no trace of the clock in the database.
func (c *DatabaseClock) Remove() {
	c.t.Helper()
	c.onNodes("ALTER DATABASE %I RESET search_path")
	c.exec("DROP SCHEMA moved CASCADE")
}

// onNodes executes a statement on each node; %I stands for the name of the database.
func (c *DatabaseClock) onNodes(statement string) {
	c.t.Helper()
	if OnCitus() {
		c.exec("SELECT run_command_on_all_nodes(format('" + statement + "', current_database()))")
		return
	}
	c.exec("DO $$ BEGIN EXECUTE format('" + statement + "', current_database()); END $$")
}

func (c *DatabaseClock) exec(sql string, args ...any) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), opTimeout)
	defer cancel()
	conn, err := pgx.Connect(ctx, c.url)
	if err != nil {
		c.t.Fatal("testenv: move the clock: ", err)
	}
	defer conn.Close(ctx)
	if _, err = conn.Exec(ctx, sql, args...); err != nil {
		c.t.Fatal("testenv: move the clock: ", err)
	}
}
