package localstack

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"strings"

	"github.com/jackc/pgx/v5"
)

// CitusConfig configures a private Citus cluster.
type CitusConfig struct {
	PostgresConfig // configuration of every node; Dir contains one directory per node

	Workers int // number of nodes that hold shards; the coordinator is an additional node without shards
}

// Citus is a private Citus cluster: a coordinator and workers. Each node is a PostgreSQL with its own port.
type Citus struct {
	Coordinator *Postgres
	Workers     []*Postgres
}

// passFile is the name of the file with the passwords that the nodes use to log in to each other.
const passFile = "nodes.pgpass"

// StartCitus starts a Citus cluster. It fails with *MissingError if this machine's PostgreSQL cannot load Citus.
func StartCitus(ctx context.Context, cfg CitusConfig) (_ *Citus, err error) {
	c := &Citus{}
	defer func() {
		if err != nil {
			err = errors.Join(citusMissing(err), c.Stop(context.WithoutCancel(ctx)))
		}
	}()
	settings := map[string]string{
		"shared_preload_libraries": "citus",
		"wal_level":                "logical", // shards move by logical replication
		"citus.node_conninfo":      "sslmode=prefer",
		"citus.local_hostname":     loopback,
		// Each database has a background worker of Citus on every node.
		"max_worker_processes":            "200",
		"max_prepared_transactions":       "200",
		"max_replication_slots":           "30",
		"max_wal_senders":                 "30",
		"max_logical_replication_workers": "16",
	}
	passwords := filepath.Join(cfg.Dir, passFile)
	for i := range cfg.Workers + 1 {
		node := cfg.PostgresConfig
		node.Dir = filepath.Join(cfg.Dir, fmt.Sprintf("node-%d", i))
		node.Extra = maps.Clone(settings)
		maps.Copy(node.Extra, cfg.Extra)
		node.Env = append([]string{"PGPASSFILE=" + passwords}, cfg.Env...)
		p, err := StartPostgres(ctx, node)
		if err != nil {
			return c, fmt.Errorf("start node %d of the Citus cluster: %w", i, err)
		}
		if c.Coordinator == nil {
			c.Coordinator = p
		} else {
			c.Workers = append(c.Workers, p)
		}
	}
	for _, w := range c.Workers {
		if err := w.setPassword(ctx, c.Coordinator.password); err != nil {
			return c, err
		}
	}
	if err := writeSecret(passwords, "*:*:*:*:"+c.Coordinator.password, c.Coordinator.as); err != nil {
		return c, err
	}
	return c, nil
}

// setPassword sets the superuser's password on this node. When Citus adds a node, it sets the passwords of the node's
// roles to those of the coordinator. So the nodes have the same password from the start.
func (p *Postgres) setPassword(ctx context.Context, password string) error {
	if err := p.exec(ctx, "ALTER ROLE "+Superuser+" PASSWORD '"+password+"'"); err != nil {
		return fmt.Errorf("set the password of a node: %w", err)
	}
	p.password = password
	return writeSecret(filepath.Join(p.dir, "password"), password, p.as)
}

// Nodes returns the coordinator and the workers.
func (c *Citus) Nodes() []*Postgres {
	if c.Coordinator == nil {
		return c.Workers
	}
	return append([]*Postgres{c.Coordinator}, c.Workers...)
}

// Stop stops all nodes.
func (c *Citus) Stop(ctx context.Context) error {
	var errs error
	for _, n := range c.Nodes() {
		errs = errors.Join(errs, n.Stop(ctx))
	}
	return errs
}

// MakeDatabase creates an empty database with the extension on all nodes, and registers the nodes in it.
func (c *Citus) MakeDatabase(ctx context.Context, name string) error {
	for _, n := range c.Nodes() {
		if err := n.exec(ctx, "CREATE DATABASE "+pgx.Identifier{name}.Sanitize()+" TEMPLATE template0"); err != nil && !hasCode(err, codeDuplicateDatabase) {
			return fmt.Errorf("create database: %w", err)
		}
		if err := n.execIn(ctx, name, "CREATE EXTENSION IF NOT EXISTS citus"); err != nil {
			return fmt.Errorf("create the extension citus: %w", err)
		}
	}
	if err := c.Coordinator.execIn(ctx, name, "SELECT citus_set_coordinator_host($1, $2)", loopback, c.Coordinator.port); err != nil {
		return fmt.Errorf("set the coordinator's address: %w", err)
	}
	for _, w := range c.Workers {
		if err := c.Coordinator.execIn(ctx, name, "SELECT citus_add_node($1, $2)", loopback, w.port); err != nil {
			return fmt.Errorf("add a node: %w", err)
		}
	}
	return nil
}

// CloseTemplate ends the connections to a database on all nodes and forbids new connections. CopyDatabase can only
// copy a database without connections.
func (c *Citus) CloseTemplate(ctx context.Context, name string) error {
	return c.execAll(ctx, "close the template",
		"ALTER DATABASE "+pgx.Identifier{name}.Sanitize()+" WITH ALLOW_CONNECTIONS false",
		"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '"+name+"'")
}

// CopyDatabase copies a closed database on each node, with its shards and Citus' metadata.
func (c *Citus) CopyDatabase(ctx context.Context, name, template string) error {
	return c.execAll(ctx, "copy database",
		"CREATE DATABASE "+pgx.Identifier{name}.Sanitize()+" TEMPLATE "+pgx.Identifier{template}.Sanitize())
}

// execAll executes each statement on all nodes before the next statement. Its error begins with the text `what`.
func (c *Citus) execAll(ctx context.Context, what string, statements ...string) error {
	for _, sql := range statements {
		for _, n := range c.Nodes() {
			if err := n.exec(ctx, sql); err != nil {
				return fmt.Errorf("%s: %w", what, err)
			}
		}
	}
	return nil
}

// DropDatabase drops a database on all nodes. It starts with the coordinator, which has connections to the other
// nodes. Citus' own processes may reconnect during a drop, and PostgreSQL then gives up after five seconds. In that
// case DropDatabase tries again, until ctx ends.
func (c *Citus) DropDatabase(ctx context.Context, name string) error {
	var errs error
	for _, n := range c.Nodes() {
		err := n.exec(ctx, "DROP DATABASE IF EXISTS "+pgx.Identifier{name}.Sanitize()+" WITH (FORCE)")
		for hasCode(err, codeObjectInUse) && ctx.Err() == nil {
			err = n.exec(ctx, "DROP DATABASE IF EXISTS "+pgx.Identifier{name}.Sanitize()+" WITH (FORCE)")
		}
		errs = errors.Join(errs, err)
	}
	return errs
}

// citusMissing turns the error of a server that cannot load Citus into a *MissingError.
func citusMissing(err error) error {
	text := err.Error()
	missing := strings.Contains(text, `could not access file "citus"`)
	if !missing && !strings.Contains(text, "could not load library") {
		return err
	}
	cause := err
	if !missing {
		cause = fmt.Errorf("it is there, and was built for another minor version of PostgreSQL: update PostgreSQL or Citus: %w", err)
	}
	return &MissingError{
		Program: "Citus for this PostgreSQL", Looked: []string{"the server's library directory"}, Cause: cause,
		Install: "`apt-get install postgresql-15-citus-13.2` from Citus's own Debian repository",
	}
}
